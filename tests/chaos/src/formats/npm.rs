//! npm: a document with an embedded archive, and a packument.

use super::PackageVersion;
use crate::history::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::{Client, Request, Response};
use serde_json::{Value, json};
use sha1::Digest as _;
use std::collections::BTreeSet;
use std::io::Write as _;

pub(super) fn path(package: &str, version: &str) -> String {
    format!("/repositories/npm/{package}/-/{package}-{version}.tgz")
}

pub(super) fn publish(client: &Client, item: &PackageVersion) -> Outcome {
    let PackageVersion { package, version, bytes, .. } = item;
    let file = format!("{package}-{version}.tgz");
    let dist = json!({
        "shasum": hex::encode(sha1::Sha1::digest(bytes)),
        "integrity": format!("sha512-{}", STANDARD.encode(sha2::Sha512::digest(bytes))),
        "tarball": format!("http://localhost/{package}/-/{file}"),
    });
    let id = format!("{package}@{version}");
    let mut attachments = json!({});
    attachments[file] = json!({
        "content_type": "application/octet-stream", "length": bytes.len(), "data": STANDARD.encode(bytes),
    });
    let mut versions = json!({});
    versions[version] = json!({"name": package, "version": version, "_id": id, "dist": dist});
    // Each version gets its own tag; otherwise all versions would share `latest`.
    let mut tags = json!({});
    tags[format!("t{}", version.replace('.', "-"))] = json!(version);
    let document = json!({
        "_id": package, "name": package, "dist-tags": tags, "versions": versions, "_attachments": attachments,
    });
    let request = Request::new("PUT", &format!("/repositories/npm/{package}"));
    let request = request.header("Content-Type", "application/json").body(document.to_string());
    Outcome::of(&client.try_send(request), &[201, 200])
}

pub(super) fn index(package: &str) -> String {
    format!("/repositories/npm/{package}")
}

pub(super) fn listed(answer: &Response) -> Option<BTreeSet<String>> {
    let document: Value = serde_json::from_slice(&answer.body).ok()?;
    Some(document.get("versions")?.as_object()?.keys().cloned().collect())
}

/// A package archive with these filler bytes beside its manifest.
pub(super) fn archive(package: &str, version: &str, filler: &[u8]) -> Vec<u8> {
    let manifest = json!({"name": package, "version": version}).to_string();
    let files = [("package/package.json", manifest.as_bytes()), ("package/data", filler)];
    let tar: Vec<u8> =
        files.iter().flat_map(|(name, content)| entry(name, content)).chain([0; 1024]).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

fn entry(name: &str, content: &[u8]) -> Vec<u8> {
    let mut head = vec![0_u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..108].copy_from_slice(b"0000644\0");
    head[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    head[148..156].copy_from_slice(b"        ");
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head.extend(content);
    head.resize(head.len().next_multiple_of(512), 0);
    head
}
