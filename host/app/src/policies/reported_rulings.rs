//! Recently reported rulings. The same ruling is reported again only after a pause, even if clients
//! repeat the request.

use std::hash::{DefaultHasher, Hasher as _};

use packhouse_store::now_ms;
use quick_cache::sync::Cache;

/// Maximum number of rulings that the server remembers.
const MOST: usize = 10_000;
/// Pause before the same ruling is reported again, in ms.
const QUIET_MS: i64 = 60_000;

/// Failure of a rule on this server.
#[derive(Clone, Debug)]
pub struct RuleFailure {
    /// Time of the last failure, in ms since 1970.
    pub at: i64,
    pub times: u64,
    /// Error of the last failure.
    pub error: String,
}

pub(crate) struct ReportedRulings(Cache<u64, i64>);

impl Default for ReportedRulings {
    fn default() -> ReportedRulings {
        ReportedRulings(Cache::new(MOST))
    }
}

impl ReportedRulings {
    /// Reports whether this ruling should be reported, because it was not reported recently.
    /// Records it as reported.
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
    fn the_same_ruling_is_reported_once() {
        let reported = ReportedRulings::default();
        assert!(reported.is_news((1, "a")) && !reported.is_news((1, "a")) && reported.is_news((1, "b")));
    }
}
