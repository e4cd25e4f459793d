//! The piece that a call makes, and what it reads meanwhile.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use std::sync::Arc;

use packhouse_store::{Dependencies, RepositoryId, Seen};

use crate::reads::Reads;
use crate::state::HostState;

/// The handle on the call's one making.
pub struct MakingRep;

/// What is being made.
pub(crate) struct Making {
    pub(crate) seen: Seen,
    pub(crate) settings: Arc<str>,
    pub(crate) name: String,
    /// What the call had read before.
    reads: Reads,
    /// Whether it had used what no commit tells a change of.
    uncacheable: bool,
    /// Up to when what it had used stands.
    until: Option<i64>,
    /// How often it had turned to replies of upstreams.
    replies: u64,
}

/// A piece that was made, and what was read for it.
pub(crate) struct Made {
    pub(crate) making: Making,
    /// None where it may not be remembered.
    pub(crate) dependencies: Option<Dependencies>,
}

impl HostState {
    /// Begins to note what is read; false while something is being made.
    pub(crate) fn start_making(&mut self, seen: Seen, settings: Arc<str>, name: String) -> bool {
        if self.making.is_some() {
            return false;
        }
        let (reads, uncacheable) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.uncacheable));
        let (until, replies) = (self.until.take(), self.replies.turns());
        self.making = Some(Making { seen, settings, name, reads, uncacheable, until, replies });
        true
    }

    /// Ends it. What was read counts as read by the call.
    pub(crate) fn end_making(&mut self) -> Option<Made> {
        let mut making = self.making.take()?;
        let reads = std::mem::replace(&mut self.reads, std::mem::take(&mut making.reads));
        // A piece stands until a commit, not until a moment.
        let timed = self.until.is_some() || self.replies.turns() != making.replies;
        self.note_until(making.until);
        let used_more = self.uncacheable || timed;
        self.uncacheable |= making.uncacheable;
        self.reads.extend(reads.clone());
        let dependencies = only(reads, making.seen.repository).filter(|_| !used_more && !self.changes);
        Some(Made { making, dependencies })
    }
}

/// What was read, where it was of this repository alone.
fn only(reads: Reads, repository: RepositoryId) -> Option<Dependencies> {
    let mut found = Dependencies::default();
    for (of, dependencies) in reads {
        if of != repository {
            return None;
        }
        found = dependencies;
    }
    Some(found)
}
