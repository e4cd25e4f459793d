//! What is told of refusals: each once in a while, whatever a client repeats.

use std::hash::{DefaultHasher, Hasher as _};

use packhouse_store::now_ms;
use quick_cache::sync::Cache;

/// Refusals that are remembered.
const MOST: usize = 10_000;
/// For how long (ms) the same is not told again.
const QUIET_MS: i64 = 60_000;

/// What went wrong with a rule on this server.
#[derive(Clone, Debug)]
pub struct RuleFailure {
    /// When it did last, in ms since 1970.
    pub at: i64,
    /// How often.
    pub times: u64,
    /// What, the last time.
    pub error: String,
}

/// What was told lately.
pub(crate) struct Told(Cache<u64, i64>);

impl Default for Told {
    fn default() -> Told {
        Told(Cache::new(MOST))
    }
}

impl Told {
    /// Whether this is to be told: it was not, for a while.
    pub(crate) fn is_news(&self, what: impl std::hash::Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let (key, now) = (hasher.finish(), now_ms());
        let is_quiet = self.0.get(&key).is_some_and(|at| (0..QUIET_MS).contains(&(now - at)));
        if !is_quiet {
            self.0.insert(key, now);
        }
        !is_quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once() {
        let told = Told::default();
        assert!(told.is_news((1, "a")) && !told.is_news((1, "a")) && told.is_news((1, "b")));
    }
}
