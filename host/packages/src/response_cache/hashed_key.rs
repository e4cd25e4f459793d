//! Keys of 16 bytes, for entries that are hardly larger than their requests.

use packhouse_runtime::Looked;
use siphasher::sip128::SipHasher24;

use super::CacheKey;
use super::level::Keys;

/// Makes them: SipHash-2-4 of 128 bits under a key that nobody knows, so that who chooses requests finds no two of one hash.
pub(super) struct KeyHasher(SipHasher24);

impl Default for KeyHasher {
    fn default() -> Self {
        Self(SipHasher24::new_with_key(&rand::random()))
    }
}

impl KeyHasher {
    /// Those of a request.
    pub(super) fn of<'a>(&'a self, key: &'a CacheKey) -> HashedKey<'a> {
        HashedKey { key, hasher: &self.0 }
    }
}

/// See the module.
pub(super) struct HashedKey<'a> {
    key: &'a CacheKey,
    hasher: &'a SipHasher24,
}

impl Keys for HashedKey<'_> {
    fn up_to(&self, looked: Looked) -> impl AsRef<[u8]> {
        self.hasher.hash(self.key.up_to(looked)).as_bytes()
    }
}
