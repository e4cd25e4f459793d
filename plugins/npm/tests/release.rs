//! A version as a client publishes it: the archive, its digests, and the document around them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::Digest as _;
use std::io::Write as _;

/// A version that can be published.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    name: String,
    version: String,
    tag: String,
    files: Vec<(String, Vec<u8>)>,
    raw: Option<Vec<u8>>,
    attested: bool,
    /// Members of the document's manifest that replace the members of the archive's `package.json`.
    manifest_members: Value,
}

impl Release {
    /// Creates a version whose archive has only a `package.json`.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let package = json!({
            "name": name, "version": version, "description": format!("about {name}"), "keywords": ["testing"],
            "dependencies": {"dep": "^1.0.0"}, "scripts": {"test": "true"},
        });
        let package = package.to_string().into_bytes();
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            tag: "latest".to_owned(),
            files: vec![("package/package.json".to_owned(), package)],
            raw: None,
            attested: false,
            manifest_members: json!({}),
        }
    }

    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.tag = tag.to_owned();
        self
    }

    /// Adds a file below `package/`, or outside that folder if the path begins with `../`.
    pub(crate) fn file(mut self, path: &str, content: &str) -> Self {
        let path = path.strip_prefix("../").map_or_else(|| format!("package/{path}"), str::to_owned);
        self.files.push((path, content.as_bytes().to_vec()));
        self
    }

    /// Replaces all files of the archive.
    pub(crate) fn files(mut self, files: &[(&str, &str)]) -> Self {
        self.files =
            files.iter().map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec())).collect();
        self
    }

    /// Replaces the `package.json` in the archive. The document's manifest has the same members,
    /// except for its name and version.
    pub(crate) fn package_json(self, text: &str) -> Self {
        self.files(&[("package/package.json", text)])
    }

    /// Sets members of the document's manifest, whatever the archive's `package.json` says; null
    /// removes a member.
    pub(crate) fn manifest_members(mut self, members: &Value) -> Self {
        self.manifest_members.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self
    }

    /// Returns the document's manifest.
    fn manifest(&self) -> Value {
        let Self { name, version, .. } = self;
        let own = self.files.iter().find(|(path, _)| path.ends_with("/package.json"));
        let own = own.filter(|_| self.raw.is_none()).map(|(_, text)| text.as_slice()).unwrap_or_default();
        let own = own.strip_prefix(b"\xef\xbb\xbf").unwrap_or(own);
        let mut manifest = json!({"description": format!("about {name}"), "keywords": ["testing"]});
        let members = manifest.as_object_mut().unwrap();
        members.extend(
            serde_json::from_slice::<Value>(own)
                .ok()
                .and_then(|own| own.as_object().cloned())
                .unwrap_or_default(),
        );
        let computed = json!({
            "name": name, "version": version, "readme": format!("# {name}"), "readmeFilename": "README.md",
            "_id": format!("{name}@{version}"), "_npmVersion": "11.0.0",
        });
        members.extend(computed.as_object().unwrap().clone());
        members.extend(self.manifest_members.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_null());
        manifest
    }

    /// Sends these bytes instead of an archive.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.raw = Some(bytes.to_vec());
        self
    }

    /// Adds a bundle with provenance.
    pub(crate) fn attested(mut self) -> Self {
        self.attested = true;
        self
    }

    /// Returns the path of the publish request.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name.replace('/', "%2f"))
    }

    pub(crate) fn tarball(&self) -> Vec<u8> {
        self.raw.clone().unwrap_or_else(|| {
            gzip(&tar(&self
                .files
                .iter()
                .map(|(path, content)| (path.as_str(), content.as_slice()))
                .collect::<Vec<_>>()))
        })
    }

    pub(crate) fn shasum(&self) -> String {
        hex::encode(sha1::Sha1::digest(self.tarball()))
    }

    pub(crate) fn integrity(&self) -> String {
        format!("sha512-{}", STANDARD.encode(sha2::Sha512::digest(self.tarball())))
    }

    /// Returns the document that npm sends.
    pub(crate) fn document(&self) -> Value {
        let Self { name, version, .. } = self;
        let tarball = self.tarball();
        let file = format!("{name}-{version}.tgz");
        let mut attachments = json!({file.clone(): {
            "content_type": "application/octet-stream", "length": tarball.len(), "data": STANDARD.encode(&tarball),
        }});
        if self.attested {
            let bundle = bundle(&hex::encode(sha2::Sha512::digest(&tarball)));
            attachments[format!("{name}-{version}.sigstore")] = json!({
                "content_type": "application/vnd.dev.sigstore.bundle.v0.3+json", "length": bundle.len(), "data": bundle,
            });
        }
        let mut manifest = self.manifest();
        manifest["dist"] = json!({
            "integrity": self.integrity(), "shasum": self.shasum(), "tarball": format!("http://client.test/{file}"),
        });
        json!({
            "_id": name, "name": name, "description": format!("about {name}"), "dist-tags": {&self.tag: version}, "access": null,
            "_attachments": attachments, "versions": {version: manifest},
        })
    }
}

fn bundle(sha512: &str) -> String {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1",
        "subject": [{"name": "pkg:npm/x", "digest": {"sha512": sha512}}], "predicate": {},
    });
    let envelope = json!({
        "payload": STANDARD.encode(statement.to_string()), "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": "AA==", "keyid": ""}],
    });
    json!({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": {}, "dsseEnvelope": envelope})
        .to_string()
}

/// Packs bytes as gzip without compression.
pub(crate) fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Packs bytes as gzip with deterministic compression.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Packs plain files as a tar archive.
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, content) in files {
        let mut header = [0u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}
