//! Checksums of files. The plugin serves a checksum as a file (`tool.zip.sha256`) and in response
//! headers. Clients can state checksums for an upload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Failure, Request, Response};

/// Headers in which a client states a checksum, besides `Content-Digest`.
pub(crate) const HEADERS: [&str; 4] =
    ["x-checksum-md5", "x-checksum-sha1", "x-checksum-sha256", "x-checksum-sha512"];

/// A checksum algorithm that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// All algorithms, from the weakest to the strongest.
    pub(crate) const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The host's name for the algorithm, which is also the extension of its checksum files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Number of hex digits of a checksum.
    fn length(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    /// Splits the path of a checksum file: `tool.zip.sha256` becomes `tool.zip` and the algorithm.
    /// Returns `None` for any other path.
    pub(crate) fn split(path: &str) -> Option<(&str, Self)> {
        let (file, extension) = path.rsplit_once('.')?;
        let is_name = !file.is_empty() && !file.ends_with('/');
        Self::ALL.into_iter().find(|one| is_name && one.name() == extension).map(|one| (file, one))
    }

    /// Name of the header for a checksum of this algorithm.
    pub(crate) fn header(self) -> String {
        format!("x-checksum-{}", self.name())
    }

    /// Parses a checksum in hex and returns it in lower case. Returns `None` if the text has a
    /// wrong length or other characters.
    pub(crate) fn read(self, text: &str) -> Option<String> {
        let text = text.trim();
        let is_valid = text.len() == self.length() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_valid.then(|| text.to_ascii_lowercase())
    }
}

/// Adds a checksum to the headers of a response.
pub(crate) fn with_checksum(response: Response, algorithm: Algorithm, hex: &str) -> Response {
    response.header(algorithm.header(), hex)
}

/// A line of a checksum file, in the format that `sha256sum` writes and checks.
pub(crate) fn line(hex: &str, name: &str) -> String {
    format!("{hex}  {name}\n")
}

/// Returns the checksums that a client states for its upload, in `X-Checksum-…` and in
/// `Content-Digest` (RFC 9530). Ignores unknown algorithms in `Content-Digest`.
///
/// # Errors
/// 400 `invalid_checksum` if a header does not hold a valid checksum.
pub(crate) fn stated(request: &Request) -> Result<Vec<(Algorithm, String)>, Failure> {
    let mut found = Vec::new();
    for algorithm in Algorithm::ALL {
        let header = algorithm.header();
        let Some(text) = request.header(&header) else { continue };
        let hex = algorithm
            .read(text)
            .ok_or_else(|| invalid(&format!("{header} does not hold a {} in hex", algorithm.name())))?;
        found.push((algorithm, hex));
    }
    if let Some(text) = request.header("content-digest") {
        found.extend(content_digest(text).ok_or_else(|| invalid("Content-Digest does not follow RFC 9530"))?);
    }
    Ok(found)
}

fn invalid(text: &str) -> Failure {
    Failure::new(400, "invalid_checksum", text)
}

/// Parses a dictionary of byte sequences (RFC 8941), such as `sha-256=:…:, sha-512=:…:`. Skips
/// unknown algorithms. Returns `None` if the text or a checksum is invalid.
fn content_digest(text: &str) -> Option<Vec<(Algorithm, String)>> {
    let mut found = Vec::new();
    for member in text.split(',') {
        let (name, value) = member.trim().split_once('=')?;
        let value = value.strip_prefix(':')?.strip_suffix(':')?;
        let algorithm = match name {
            "sha-256" => Algorithm::Sha256,
            "sha-512" => Algorithm::Sha512,
            "sha" => Algorithm::Sha1,
            "md5" => Algorithm::Md5,
            _ => continue,
        };
        found.push((algorithm, algorithm.read(&hex::encode(STANDARD.decode(value).ok()?))?));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_path_of_a_checksum_file_is_split() {
        assert_eq!(Algorithm::split("a/b.zip.sha512"), Some(("a/b.zip", Algorithm::Sha512)));
        for path in ["a.zip", "sha1", ".sha1", "a/.sha256", "a.sha256/b"] {
            assert_eq!(Algorithm::split(path), None, "{path}");
        }
    }

    #[test]
    fn a_content_digest_is_read() {
        let one = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        let expected = vec![(Algorithm::Sha256, EMPTY.to_owned())];
        assert_eq!(content_digest(one), Some(expected.clone()));
        assert_eq!(content_digest(&format!("id-sha=:AA==:, {one}")), Some(expected));
        for bad in ["", "sha-256", "sha-256=47DE", "sha-256=:?:", "sha-256=:47DE:"] {
            assert_eq!(content_digest(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,120}") {
            let _ = content_digest(&text);
            for algorithm in Algorithm::ALL {
                if let Some(hex) = algorithm.read(&text) {
                    prop_assert_eq!(hex.len(), algorithm.length());
                }
            }
        }
    }
}
