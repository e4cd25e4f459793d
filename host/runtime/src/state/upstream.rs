//! Objects behind the handles of `upstream`.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::services::{CacheUse, Fetch, Reply, ReplyLifetime};

/// A fetch that is being assembled. `start` reports the first problem with it.
pub struct FetchRep {
    pub(crate) fetch: Fetch,
    pub(crate) problem: Option<String>,
}

pub struct ReplyRep {
    pub(crate) reply: Box<dyn Reply>,
    /// True if the call has counted the reply's lifetime or staleness.
    pub(crate) counted: bool,
}

/// Upstream replies that a call used.
#[derive(Debug, Default)]
pub(crate) struct UsedReplies {
    /// Number of replies without a known lifetime.
    unknown: usize,
    use_count: u64,
    uses: Vec<CacheUse>,
}

impl UsedReplies {
    pub(crate) fn started(&mut self) {
        self.unknown += 1;
        self.used();
    }

    /// Counts a use of a reply by the plugin.
    pub(crate) fn used(&mut self) {
        self.use_count += 1;
    }

    pub(crate) fn use_count(&self) -> u64 {
        self.use_count
    }

    /// Counts a reply whose lifetime is now known.
    pub(crate) fn known(&mut self, lifetime: &ReplyLifetime) {
        self.unknown = self.unknown.saturating_sub(1);
        self.uses.push(lifetime.cache_use);
    }

    /// Counts a reply that is stale for an unknown time.
    pub(crate) fn stale(&mut self, cache_use: CacheUse) {
        self.uses.push(cache_use);
    }

    /// Returns true if an answer made from the replies may be cached.
    pub(crate) fn are_known(&self) -> bool {
        self.unknown == 0
    }

    /// Takes the uses of cached proxy content.
    pub(crate) fn take(&mut self) -> Vec<CacheUse> {
        std::mem::take(&mut self.uses)
    }
}
