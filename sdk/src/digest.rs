//! Digests of bytes.

use crate::Error;
use core::{fmt, str::FromStr};
use serde::{Deserialize, Serialize};

/// Digest in the form `<algorithm>:<lower-case hex>`, for example `sha256:9f86…`. Algorithms:
/// `sha256`, `sha512`, `sha1`, `md5`, `blake2b-256`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    /// Creates the digest of this algorithm and this value in lower-case hex.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown algorithm, or for a value that has the wrong length or is
    /// not lower-case hex.
    pub fn new(algorithm: &str, hex: &str) -> Result<Self, Error> {
        format!("{algorithm}:{hex}").parse()
    }

    /// Returns the whole text `<algorithm>:<hex>`, as in records and documents.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> &str {
        self.0.split_once(':').map_or("", |(algorithm, _)| algorithm)
    }

    /// Returns the value in lower-case hex.
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// Returns the value as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let pairs = self.hex().as_bytes().chunks(2).filter_map(|pair| core::str::from_utf8(pair).ok());
        pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
    }

    /// Wraps a digest from the host without checking it.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn trusted(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        check(&text)?;
        Ok(Self(text))
    }
}

fn check(text: &str) -> Result<(), Error> {
    let (algorithm, hex) = text.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" | "blake2b-256" => 64,
        "sha512" => 128,
        "sha1" => 40,
        "md5" => 32,
        _ => 0,
    };
    let lower_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if length == 0 || hex.len() != length || !lower_hex {
        return Err(Error::Invalid(format!("not a digest: {text}")));
    }
    Ok(())
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
