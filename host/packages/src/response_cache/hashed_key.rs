//! Hashed keys of 16 bytes, for entries that are not much larger than the unhashed keys.

use packhouse_runtime::Looked;
use siphasher::sip128::SipHasher24;

use super::CacheKey;
use super::level::Keys;

/// Hashes keys with 128-bit SipHash-2-4 under a random secret key, so that clients cannot construct
/// collisions.
pub(super) struct KeyHasher(SipHasher24);

impl Default for KeyHasher {
    fn default() -> Self {
        Self(SipHasher24::new_with_key(&rand::random()))
    }
}

impl KeyHasher {
    /// Returns the hashed keys of a request.
    pub(super) fn of<'a>(&'a self, key: &'a CacheKey) -> HashedKey<'a> {
        HashedKey { key, hasher: &self.0 }
    }
}

/// Hashed keys of a request.
pub(super) struct HashedKey<'a> {
    key: &'a CacheKey,
    hasher: &'a SipHasher24,
}

impl Keys for HashedKey<'_> {
    fn up_to(&self, looked: Looked) -> impl AsRef<[u8]> {
        self.hasher.hash(self.key.up_to(looked)).as_bytes()
    }
}
