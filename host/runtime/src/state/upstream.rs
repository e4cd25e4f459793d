//! What stands behind the handles of `upstream`.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::services::{CacheUse, Fetch, Reply, ReplyLifetime};

/// A fetch that is being put together; what is wrong with it is told by `start`.
pub struct FetchRep {
    pub(crate) fetch: Fetch,
    pub(crate) problem: Option<String>,
}

/// An upstream's reply.
pub struct ReplyRep {
    pub(crate) reply: Box<dyn Reply>,
    /// Whether it is noted for how long what is made of it stands.
    pub(crate) noted: bool,
}

/// What a call used of upstreams.
#[derive(Debug, Default)]
pub(crate) struct UsedReplies {
    /// Replies of which nothing is known yet.
    unknown: usize,
    turns: u64,
    uses: Vec<CacheUse>,
}

impl UsedReplies {
    /// A fetch was started.
    pub(crate) fn started(&mut self) {
        self.unknown += 1;
        self.turned_to();
    }

    /// The plugin asks for one of them, or asks one of them.
    pub(crate) fn turned_to(&mut self) {
        self.turns += 1;
    }

    /// How often it did.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// It is known how long what is made of one of them stands.
    pub(crate) fn known(&mut self, lifetime: &ReplyLifetime) {
        self.unknown = self.unknown.saturating_sub(1);
        self.uses.push(lifetime.cache_use);
    }

    /// One of them is older than it should be, and nobody knows for how long.
    pub(crate) fn stale(&mut self, cache_use: CacheUse) {
        self.uses.push(cache_use);
    }

    /// Whether an answer may be kept that was made of them.
    pub(crate) fn are_known(&self) -> bool {
        self.unknown == 0
    }

    /// The uses of what proxies keep.
    pub(crate) fn take(&mut self) -> Vec<CacheUse> {
        std::mem::take(&mut self.uses)
    }
}
