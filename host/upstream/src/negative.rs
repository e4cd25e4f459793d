//! Answers that there is nothing, remembered for a while in memory: whoever asks for names that are not there fills no disk.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use packhouse_store::{CacheName, RepositoryId, now_ms};

use super::flight::Landed;

/// As many are remembered.
const MOST: usize = 10_000;

/// What was asked of which repository's upstream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Key(pub RepositoryId, pub CacheName);

/// See the module.
#[derive(Default)]
pub(crate) struct Negatives {
    known: Mutex<HashMap<Key, Negative>>,
}

struct Negative {
    target: String,
    until: i64,
    landed: Landed,
}

impl Negatives {
    /// The answer, if it still counts.
    pub(crate) fn get(&self, key: Key) -> Option<Landed> {
        let known = self.lock();
        known.get(&key).filter(|negative| now_ms() < negative.until).map(|negative| negative.landed.clone())
    }

    /// Remembers one until then (ms since 1970).
    pub(crate) fn put(&self, key: Key, target: &str, until: i64, landed: &Landed) {
        let mut known = self.lock();
        if known.len() >= MOST {
            let now = now_ms();
            known.retain(|_, negative| now < negative.until);
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, Negative { target: target.to_owned(), until, landed: landed.clone() });
    }

    /// Forgets those of a repository whose target begins so.
    pub(crate) fn purge(&self, repository: RepositoryId, prefix: &str) {
        self.lock().retain(|key, negative| key.0 != repository || !negative.target.starts_with(prefix));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Negative>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_nothing_for_its_time_and_until_it_is_purged() {
        let negatives = Negatives::default();
        let key = |number: i64| Key(RepositoryId(number), [0; 32]);
        let landed = Landed::bare(404, "https://upstream.test/a");
        negatives.put(key(1), "/a", now_ms() + 60_000, &landed);
        negatives.put(key(2), "/a", now_ms() + 60_000, &landed);
        negatives.put(key(3), "/a", now_ms() - 1, &landed);
        assert!(negatives.get(key(1)).is_some() && negatives.get(key(3)).is_none());
        negatives.purge(RepositoryId(1), "/a");
        assert!(negatives.get(key(1)).is_none() && negatives.get(key(2)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let negatives = Negatives::default();
        let landed = Landed::bare(404, "");
        for number in 0..=i64::try_from(MOST).unwrap() {
            negatives.put(Key(RepositoryId(number), [0; 32]), "", i64::MAX, &landed);
        }
        assert!(negatives.lock().len() <= MOST);
    }
}
