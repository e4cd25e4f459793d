//! Builds gems like those of `gem build`. The same arguments always give the same bytes.

#![allow(dead_code, unreachable_pub, reason = "each user of this file needs only some of it")]
#![allow(clippy::unwrap_used, reason = "tests must fail loudly")]

use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_testkit::tar_archive;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;

/// Builds the YAML of a specification. `more` contains additional lines, which may include
/// dependencies (see [`needs`]).
pub fn yaml(name: &str, version: &str, platform: &str, more: &str) -> String {
    let more =
        if more.contains("dependencies:") { more.to_owned() } else { format!("dependencies: []\n{more}") };
    format!(
        "--- !ruby/object:Gem::Specification\nname: {name}\nversion: !ruby/object:Gem::Version\n  version: '{version}'\nplatform: {platform}\n\
         authors:\n- Ann\nautorequire:\nbindir: bin\ncert_chain: []\ndate: 2026-11-21 00:00:00.000000000 Z\n{more}description: A longer text about {name}\n\
         email:\n- ann@example.org\nexecutables: []\nextensions: []\nextra_rdoc_files: []\nfiles:\n- lib/{name}.rb\nhomepage: https://example.org/{name}\n\
         licenses:\n- MIT\nmetadata: {{}}\npost_install_message:\nrdoc_options: []\nrequire_paths:\n- lib\n\
         required_ruby_version: !ruby/object:Gem::Requirement\n  requirements:\n  - - \">=\"\n    - !ruby/object:Gem::Version\n      version: '2.0'\n\
         required_rubygems_version: !ruby/object:Gem::Requirement\n  requirements:\n  - - \">=\"\n    - !ruby/object:Gem::Version\n      version: '0'\n\
         requirements: []\nrubygems_version: 3.3.15\nsigning_key:\nspecification_version: 4\nsummary: About {name}\ntest_files: []\n"
    )
}

/// Builds the lines of a dependency, for `more` of [`yaml`].
pub fn needs(name: &str, comparison: &str, version: &str) -> String {
    let requirement = format!(
        "!ruby/object:Gem::Requirement\n    requirements:\n    - - \"{comparison}\"\n      - !ruby/object:Gem::Version\n        version: '{version}'\n"
    );
    format!(
        "dependencies:\n- !ruby/object:Gem::Dependency\n  name: {name}\n  requirement: {requirement}  type: :runtime\n  prerelease: false\n  \
         version_requirements: {requirement}"
    )
}

/// Builds a gem with one file, whose only line contains the version.
pub fn gem(name: &str, version: &str, more: &str) -> Vec<u8> {
    built(name, version, &yaml(name, version, "ruby", more))
}

/// Builds a gem with this specification.
pub fn built(name: &str, version: &str, yaml: &str) -> Vec<u8> {
    let code = format!("{}_VERSION = \"{version}\"\n", name.to_uppercase().replace('-', "_"));
    let data = gzip(&tar_archive(&[(&format!("lib/{name}.rb"), b'0', code.as_bytes())], 1024));
    archive(&gzip(yaml.as_bytes()), &data, None)
}

/// Builds an archive of these two files. It contains their correct checksums, unless `checksums`
/// replaces them.
pub fn archive(metadata: &[u8], data: &[u8], checksums: Option<&str>) -> Vec<u8> {
    let right =
        format!("---\nSHA256:\n  metadata.gz: {}\n  data.tar.gz: {}\n", sha256(metadata), sha256(data));
    let checksums = gzip(checksums.unwrap_or(&right).as_bytes());
    tar_archive(
        &[
            ("metadata.gz", b'0', metadata),
            ("data.tar.gz", b'0', data),
            ("checksums.yaml.gz", b'0', &checksums),
        ],
        1024,
    )
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
