//! Digests computed while bytes arrive: SHA-256 and the check value always, other digests on
//! request.

use super::check::Check;
use crate::{Algorithm, Sha256};
use blake2::Blake2b256;
use bytes::Bytes;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest as _, Sha512};

/// Incremental SHA-256 and check value.
#[derive(Clone, Default)]
pub(crate) struct Sums {
    sha256: sha2::Sha256,
    check: Check,
    length: u64,
}

impl Sums {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.check.update(bytes);
        self.length = self.length.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    pub(crate) fn update_all(&mut self, pieces: &[Bytes]) {
        for piece in pieces {
            self.update(piece);
        }
    }

    /// Returns the number of bytes so far.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns SHA-256 and check value.
    pub(crate) fn finish(self) -> (Sha256, u64) {
        (Sha256(self.sha256.finalize().into()), self.check.value())
    }

    /// Returns the state in bytes, from which another process can continue: length (8 bytes,
    /// little-endian), SHA-256, check value.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut out = self.length.to_le_bytes().to_vec();
        out.extend_from_slice(&self.sha256.serialize());
        self.check.save(&mut out);
        out
    }

    /// Restores the state written by `save`; `None` if `saved` is malformed.
    pub(crate) fn restore(saved: &[u8]) -> Option<Sums> {
        let (length, rest) = saved.split_first_chunk::<8>()?;
        let size = SerializedState::<sha2::Sha256>::default().len();
        let (sha256, check) = rest.split_at_checked(size)?;
        let sha256 = SerializedState::<sha2::Sha256>::try_from(sha256).ok()?;
        Some(Sums {
            sha256: sha2::Sha256::deserialize(&sha256).ok()?,
            check: Check::restore(check)?,
            length: u64::from_le_bytes(*length),
        })
    }
}

/// Incremental digest of any supported algorithm.
pub(crate) enum Hasher {
    Sha256(sha2::Sha256),
    Sha512(Sha512),
    Sha1(Sha1),
    Md5(Md5),
    Blake2b256(Blake2b256),
}

impl Hasher {
    pub(crate) fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Sha256 => Hasher::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
            Algorithm::Sha1 => Hasher::Sha1(Sha1::new()),
            Algorithm::Md5 => Hasher::Md5(Md5::new()),
            Algorithm::Blake2b256 => Hasher::Blake2b256(Blake2b256::new()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Blake2b256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn update_all(&mut self, pieces: &[Bytes]) {
        for piece in pieces {
            self.update(piece);
        }
    }

    /// Returns the bytes of the digest.
    pub(crate) fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Sha256(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha512(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha1(hasher) => hasher.finalize().to_vec(),
            Hasher::Md5(hasher) => hasher.finalize().to_vec(),
            Hasher::Blake2b256(hasher) => hasher.finalize().to_vec(),
        }
    }

    /// Returns the digest of these bytes.
    pub(crate) fn of(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_state_continues_the_saved_one() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut whole = Sums::default();
        whole.update(&bytes);
        let mut first = Sums::default();
        first.update(&bytes[..70_001]);
        let mut second = Sums::restore(&first.save()).unwrap();
        second.update(&bytes[70_001..]);
        assert_eq!(second.length(), 100_000);
        let (sha256, check) = second.finish();
        let (expected, expected_check) = whole.finish();
        assert_eq!(sha256.0, expected.0);
        assert_eq!(check, expected_check);
    }

    #[test]
    fn a_truncated_state_is_not_restored() {
        let saved = Sums::default().save();
        assert!(Sums::restore(&saved[..20]).is_none());
    }
}
