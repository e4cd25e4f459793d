//! Digests: the algorithms that the store computes, and their names on the wire.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::str::FromStr;

use crate::error::StoreError;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// SHA-256, the key of blobs. The text form is 64 characters of lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Digest of these bytes, which must be few: at most a record's size.
    pub fn of(bytes: &[u8]) -> Sha256 {
        Sha256(<sha2::Sha256 as sha2::Digest>::digest(bytes).into())
    }

    /// Digest of the whole stream, read in chunks. Blocking. Returns the reader's error.
    pub fn of_reader(mut reader: impl Read) -> std::io::Result<Sha256> {
        let (mut hasher, mut piece) = (<sha2::Sha256 as sha2::Digest>::new(), vec![0; PIECE]);
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Sha256(sha2::Digest::finalize(hasher).into())),
                Ok(length) => sha2::Digest::update(&mut hasher, piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Converts the value to a [`Digest`], which names its algorithm.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest { algorithm: Algorithm::Sha256, bytes: self.0.to_vec() }
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl FromStr for Sha256 {
    type Err = StoreError;

    /// Returns `Invalid` unless the text is 64 characters of lower-case hex.
    fn from_str(text: &str) -> Result<Sha256, StoreError> {
        let bytes = lower_hex(text)?;
        let bytes = bytes.try_into().map_err(|_| invalid(text))?;
        Ok(Sha256(bytes))
    }
}

/// An algorithm that the store can compute while bytes arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Algorithm {
    /// `sha256`, which is always computed.
    Sha256,
    Sha512,
    Sha1,
    Md5,
    Blake2b256,
}

impl Algorithm {
    /// All algorithms, of which SHA-256 is the first.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Sha256, Algorithm::Sha512, Algorithm::Sha1, Algorithm::Md5, Algorithm::Blake2b256];

    /// Name of the algorithm in the text form of digests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
            Algorithm::Sha1 => "sha1",
            Algorithm::Md5 => "md5",
            Algorithm::Blake2b256 => "blake2b-256",
        }
    }

    /// Length of its digests in bytes.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Algorithm::Sha256 | Algorithm::Blake2b256 => 32,
            Algorithm::Sha512 => 64,
            Algorithm::Sha1 => 20,
            Algorithm::Md5 => 16,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = StoreError;

    /// Returns `Invalid` for an unknown name.
    fn from_str(text: &str) -> Result<Algorithm, StoreError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| StoreError::Invalid(format!("unknown digest algorithm {text:?}")))
    }
}

/// A digest with its algorithm. The text form is `sha256:<lower-case hex>`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Digest {
    pub algorithm: Algorithm,
    /// Bytes, as many as the algorithm requires.
    pub bytes: Vec<u8>,
}

impl Digest {
    /// The bytes in lower-case hex, without the algorithm.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(&self.bytes)
    }

    /// The digest as SHA-256; `None` for another algorithm.
    #[must_use]
    pub fn sha256(&self) -> Option<Sha256> {
        if self.algorithm != Algorithm::Sha256 {
            return None;
        }
        self.bytes.as_slice().try_into().ok().map(Sha256)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.hex())
    }
}

impl FromStr for Digest {
    type Err = StoreError;

    /// Returns `Invalid` for an unknown algorithm, upper-case hex or a wrong length.
    fn from_str(text: &str) -> Result<Digest, StoreError> {
        let (algorithm, hex) = text.split_once(':').ok_or_else(|| invalid(text))?;
        let algorithm: Algorithm = algorithm.parse()?;
        let bytes = lower_hex(hex)?;
        if bytes.len() != algorithm.length() {
            return Err(invalid(text));
        }
        Ok(Digest { algorithm, bytes })
    }
}

fn lower_hex(text: &str) -> Result<Vec<u8>, StoreError> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(invalid(text));
    }
    hex::decode(text).map_err(|_| invalid(text))
}

fn invalid(text: &str) -> StoreError {
    StoreError::Invalid(format!("not a digest in lower-case hex: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_they_are_read() {
        for algorithm in Algorithm::ALL {
            let text = format!("{algorithm}:{}", "ab".repeat(algorithm.length()));
            assert_eq!(text.parse::<Digest>().unwrap().to_string(), text);
        }
        assert_eq!(Sha256([0xab; 32]).digest().sha256(), Some(Sha256([0xab; 32])));
    }

    #[test]
    fn malformed_digests_are_refused() {
        for text in ["", "sha256", "sha256:", "sha256:ab", "sha3:ab", "sha256:zz"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        assert!("AB".repeat(32).parse::<Sha256>().is_err());
        assert!("ab".repeat(31).parse::<Sha256>().is_err());
    }
}
