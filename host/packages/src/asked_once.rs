//! What was asked for once of late, in a fixed number of bytes.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of it is remembered.
const PLACES: usize = 4096;

/// The hashes of keys, each in the one place that it can have: a later key displaces an earlier one. Nobody can tell which do.
pub(crate) struct AskedOnce {
    places: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for AskedOnce {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }
}

impl AskedOnce {
    /// Whether this key was not asked for before, or so long ago that it is forgotten.
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
        let asked = AskedOnce::default();
        assert!(asked.is_first(b"one") && !asked.is_first(b"one") && !asked.is_first(b"one"));
        assert!((0..100 * PLACES).all(|number| asked.is_first(number.to_string().as_bytes())));
        assert!(asked.is_first(b"one"));
    }
}
