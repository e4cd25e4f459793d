//! Checksums: beside a file, as `tool.zip.sha256`, in headers of answers, and as clients state them of what they put.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Failure, Request, Response};

/// Headers in which a client states a checksum, besides `Content-Digest`.
pub(crate) const HEADERS: [&str; 4] =
    ["x-checksum-md5", "x-checksum-sha1", "x-checksum-sha256", "x-checksum-sha512"];

/// A checksum that clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The host's word for it, and the extension of its files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Characters of its hex.
    fn length(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    /// What a checksum file's name is the checksum of.
    pub(crate) fn split(path: &str) -> Option<(&str, Self)> {
        let (of, extension) = path.rsplit_once('.')?;
        let is_name = !of.is_empty() && !of.ends_with('/');
        Self::ALL.into_iter().find(|one| is_name && one.name() == extension).map(|one| (of, one))
    }

    /// The header that tells it.
    pub(crate) fn header(self) -> String {
        format!("x-checksum-{}", self.name())
    }

    /// Hex of its length, in lower case.
    pub(crate) fn read(self, text: &str) -> Option<String> {
        let text = text.trim();
        let good = text.len() == self.length() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then(|| text.to_ascii_lowercase())
    }
}

/// The answer with a checksum in its headers.
pub(crate) fn told(response: Response, algorithm: Algorithm, hex: &str) -> Response {
    response.header(algorithm.header(), hex)
}

/// As `sha256sum` writes and checks it.
pub(crate) fn line(hex: &str, name: &str) -> String {
    format!("{hex}  {name}\n")
}

/// What a client states of the bytes that it sends: in `X-Checksum-…`, and in `Content-Digest` (RFC 9530), whose algorithms that are
/// not known are passed over.
///
/// # Errors
/// 400 `invalid_checksum` for what is none.
pub(crate) fn stated(request: &Request) -> Result<Vec<(Algorithm, String)>, Failure> {
    let mut found = Vec::new();
    for algorithm in Algorithm::ALL {
        let header = algorithm.header();
        let Some(text) = request.header(&header) else { continue };
        let hex = algorithm
            .read(text)
            .ok_or_else(|| invalid(&format!("{header} holds no {} in hex", algorithm.name())))?;
        found.push((algorithm, hex));
    }
    if let Some(text) = request.header("content-digest") {
        found
            .extend(content_digest(text).ok_or_else(|| invalid("Content-Digest is not as RFC 9530 has it"))?);
    }
    Ok(found)
}

fn invalid(text: &str) -> Failure {
    Failure::new(400, "invalid_checksum", text)
}

/// A dictionary of byte sequences (RFC 8941): `sha-256=:…:, sha-512=:…:`.
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
    fn names_are_split() {
        assert_eq!(Algorithm::split("a/b.zip.sha512"), Some(("a/b.zip", Algorithm::Sha512)));
        for path in ["a.zip", "sha1", ".sha1", "a/.sha256", "a.sha256/b"] {
            assert_eq!(Algorithm::split(path), None, "{path}");
        }
    }

    #[test]
    fn digests_of_contents_are_read() {
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
