//! Digests as package clients write them: lower-case hex.

use sha2::Digest as _;

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(sha2::Sha256::digest(bytes))
}

/// SHA-1.
pub fn sha1(bytes: &[u8]) -> String {
    hex::encode(sha1::Sha1::digest(bytes))
}

/// SHA-512.
pub fn sha512(bytes: &[u8]) -> String {
    hex::encode(sha2::Sha512::digest(bytes))
}

/// MD5.
pub fn md5(bytes: &[u8]) -> String {
    hex::encode(md5::Md5::digest(bytes))
}

/// The digest by the extension of a checksum file: `md5`, `sha1`, `sha256` or `sha512`.
pub fn by_name(algorithm: &str, bytes: &[u8]) -> String {
    match algorithm {
        "md5" => md5(bytes),
        "sha1" => sha1(bytes),
        "sha256" => sha256(bytes),
        "sha512" => sha512(bytes),
        other => panic!("unknown checksum {other}"),
    }
}
