//! A filter that remembers recently requested keys in a fixed number of bytes.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of hashes that the filter stores.
const PLACES: usize = 4096;

/// Hashes of keys. Each hash can be stored in only one place, so a later key displaces an earlier
/// one. The hash function has a random key, so that clients cannot predict collisions.
pub(crate) struct AdmissionFilter {
    places: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for AdmissionFilter {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }
}

impl AdmissionFilter {
    /// Records the key. Returns true unless the filter still contains the key from an earlier
    /// request.
    pub(crate) fn is_first(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        let place = usize::try_from(hash % PLACES as u64).unwrap_or_default();
        self.places.get(place).is_none_or(|place| place.swap(hash, Ordering::Relaxed) != hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_the_second_time_until_others_displace_it() {
        let filter = AdmissionFilter::default();
        assert!(filter.is_first(b"one") && !filter.is_first(b"one") && !filter.is_first(b"one"));
        assert!((0..100 * PLACES).all(|number| filter.is_first(number.to_string().as_bytes())));
        assert!(filter.is_first(b"one"));
    }
}
