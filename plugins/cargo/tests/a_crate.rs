//! Builder of the body that cargo sends when it publishes. The protocol table, the fuzzer, and
//! tests without a cargo project use it.

use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_testkit::tar_archive;
use serde_json::{Value, json};
use std::io::Write as _;

/// A version of a crate to publish.
#[derive(Clone, Debug)]
pub(crate) struct ACrate {
    pub(crate) metadata: Value,
    pub(crate) file: Vec<u8>,
}

impl ACrate {
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n");
        let folder = format!("{name}-{version}");
        let file = gzip(&tar_archive(
            &[
                (&format!("{folder}/Cargo.toml"), b'0', manifest.as_bytes()),
                (&format!("{folder}/src/lib.rs"), b'0', b"pub fn answer() -> u32 { 42 }\n"),
            ],
            1024,
        ));
        let metadata = json!({
            "name": name, "vers": version, "deps": [], "features": {}, "authors": [], "description": format!("About {name}"),
            "documentation": null, "homepage": null, "readme": format!("# {name}"), "readme_file": "README.md",
            "keywords": ["word"], "categories": [], "license": "MIT", "license_file": null, "repository": null,
            "badges": {}, "links": null, "rust_version": null,
        });
        Self { metadata, file }
    }

    /// Replaces these members of the metadata.
    pub(crate) fn with(mut self, members: Value) -> Self {
        for (name, value) in members.as_object().unwrap() {
            self.metadata[name] = value.clone();
        }
        self
    }

    /// Replaces the file.
    pub(crate) fn file(mut self, file: Vec<u8>) -> Self {
        self.file = file;
        self
    }

    /// The body of the publish request.
    pub(crate) fn body(&self) -> Vec<u8> {
        framed(self.metadata.to_string().as_bytes(), &self.file)
    }
}

/// Metadata and a file, each preceded by its length.
pub(crate) fn framed(metadata: &[u8], file: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&length(metadata)[..], metadata, &length(file), file].concat()
}

/// Compresses bytes with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
