//! Builder of the zips of packages. The same input always gives the same bytes.

#![allow(dead_code, unreachable_pub, reason = "each user of this file needs only some of it")]
#![allow(clippy::unwrap_used, reason = "tests must fail loudly")]

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha1::{Digest as _, Sha1};
use std::io::Write as _;

/// A zip of a package with a PHP file that returns the version. `more` is further JSON members of
/// the composer.json, each with a comma before it.
pub fn package(name: &str, version: &str, more: &str) -> Vec<u8> {
    let json = format!(
        "{{\"name\": \"{name}\", \"description\": \"About {name}\", \"type\": \"library\", \"license\": \"MIT\", \
         \"autoload\": {{\"files\": [\"version.php\"]}}{more}}}"
    );
    let code = format!("<?php return '{version}';\n");
    zip(&[("demo/composer.json", json.as_bytes()), ("demo/version.php", code.as_bytes())])
}

/// A zip with these files.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        packed.write_all(bytes).unwrap();
        let packed = packed.finish().unwrap();
        let mut common = vec![20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0];
        common.extend(crc32fast::hash(bytes).to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(packed);
    }
    let (start, count) = (out.len() as u32, files.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// SHA-1 in hex.
pub fn sha1(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
