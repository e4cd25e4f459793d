//! Builds charts like those of `helm package`. The same arguments always give the same bytes.

#![allow(dead_code, unreachable_pub, reason = "each user of this file needs only some of it")]
#![allow(clippy::unwrap_used, reason = "tests must fail loudly")]

use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_testkit::tar_archive;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;

/// Builds a chart with this name and version. `more` contains additional lines for its Chart.yaml.
pub fn chart(name: &str, version: &str, more: &str) -> Vec<u8> {
    let yaml = format!("apiVersion: v2\nname: {name}\nversion: {version}\ndescription: About {name}\n{more}");
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n";
    archive(&[
        (&format!("{name}/Chart.yaml"), yaml.as_bytes()),
        (&format!("{name}/values.yaml"), b"{}\n"),
        (&format!("{name}/README.md"), b"# Read me\n"),
        (&format!("{name}/templates/map.yaml"), template.as_bytes()),
    ])
}

/// Builds a gzipped tar archive of these files.
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<(&str, u8, &[u8])> = files.iter().map(|(path, bytes)| (*path, b'0', *bytes)).collect();
    gzip(&tar_archive(&entries, 1024))
}

/// Compresses these bytes with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Builds a `.prov` file that states this file name and the SHA-256 of these bytes. Its signature
/// is not a real one.
pub fn provenance(file: &str, bytes: &[u8]) -> String {
    format!(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\napiVersion: v2\nname: x\n\n...\nfiles:\n  {file}: sha256:{}\n\
         -----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n",
        sha256(bytes)
    )
}
