//! Python: a form with a wheel, and the project's page.

use super::PackageVersion;
use crate::history::Outcome;
use packhouse_tests::{Client, Request, Response};
use serde_json::Value;
use std::collections::BTreeSet;

const BOUNDARY: &str = "a-boundary-of-the-tests";

fn file(package: &str, version: &str) -> String {
    format!("{package}-{version}-py3-none-any.whl")
}

pub(super) fn path(package: &str, version: &str) -> String {
    format!("/repositories/python/packages/{package}/{version}/{}", file(package, version))
}

pub(super) fn publish(client: &Client, item: &PackageVersion) -> Outcome {
    let part = |what: &str, value: &str| {
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name={what}\r\n\r\n{value}")
    };
    let fields = [(":action", "file_upload"), ("name", &item.package), ("version", &item.version)];
    let fields = fields.map(|(name, value)| part(&format!("\"{name}\""), value) + "\r\n").concat();
    let content = format!("\"content\"; filename=\"{}\"", file(&item.package, &item.version));
    let before = fields + &part(&content, "");
    let form = [before.as_bytes(), &item.bytes, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
    let request = Request::new("POST", "/repositories/python/")
        .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"));
    Outcome::of(&client.try_send(request.body(form)), &[200])
}

pub(super) fn index(package: &str) -> String {
    format!("/repositories/python/simple/{package}/")
}

pub(super) fn listed(answer: &Response, package: &str) -> Option<BTreeSet<String>> {
    let page: Value = serde_json::from_slice(&answer.body).ok()?;
    let version = |file: &Value| {
        let name = file.get("filename")?.as_str()?.strip_prefix(package)?.strip_prefix('-')?;
        Some(name.strip_suffix("-py3-none-any.whl")?.to_owned())
    };
    page.get("files")?.as_array()?.iter().map(version).collect()
}

/// A wheel with a module of these bytes, stored uncompressed.
pub(super) fn wheel(package: &str, version: &str, filler: &[u8]) -> Vec<u8> {
    let info = format!("{package}-{version}.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n");
    let names = [
        format!("{package}/data.bin"),
        format!("{info}/METADATA"),
        format!("{info}/WHEEL"),
        format!("{info}/RECORD"),
    ];
    let record: String = names.iter().map(|name| format!("{name},,\n")).collect();
    let about = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    zip(&[
        (&names[0], filler),
        (&names[1], metadata.as_bytes()),
        (&names[2], about.as_bytes()),
        (&names[3], record.as_bytes()),
    ])
}

/// A zip archive of these files, uncompressed.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let offset = bytes.len() as u32;
        let size = (content.len() as u32).to_le_bytes();
        // The header fields in order: flag for UTF-8 names, no compression, time and date in 2025,
        // CRC-32, both sizes, length of the name, no extra field.
        let shared = [
            &[0x00, 0x08, 0, 0, 0, 0, 0x21, 0x5a][..],
            &crc32fast::hash(content).to_le_bytes(),
            &size,
            &size,
            &(name.len() as u16).to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        bytes.extend([b"PK\x03\x04\x14\x00".as_slice(), &shared, name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\x14\x03\x14\x00".as_slice(), &shared, &[0; 10]].concat());
        directory.extend([offset.to_le_bytes().as_slice(), name.as_bytes()].concat());
    }
    let start = bytes.len() as u32;
    let count = (files.len() as u16).to_le_bytes();
    let end =
        [&count[..], &count, &(directory.len() as u32).to_le_bytes(), &start.to_le_bytes(), &[0, 0]].concat();
    [bytes, directory, b"PK\x05\x06\x00\x00\x00\x00".to_vec(), end].concat()
}
