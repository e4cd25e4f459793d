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
        self.settle_outside();
        let (reads, uncacheable) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.uncacheable));
        let (until, replies) = (self.until.take(), self.replies.turns());
        self.making = Some(Making { seen, settings, name, reads, uncacheable, until, replies });
        true
    }

    /// Ends it. What was read counts as read by the call.
    pub(crate) fn end_making(&mut self) -> Option<Made> {
        let mut making = self.making.take()?;
        self.settle_outside();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::config::Limits;
    use crate::request::{Action, RequestHead};
    use crate::state::Access;

    fn state() -> HostState {
        let call = Call::new(Arc::new(RequestHead::default()), Action::Read);
        HostState::new("p".into(), Arc::new(Limits::default()), None, Access::Intent(Action::Read), call)
    }

    fn start(state: &mut HostState) -> bool {
        state.start_making(Seen { repository: RepositoryId(1), revision: 7 }, "{}".into(), "piece".to_owned())
    }

    fn on(key: &str) -> Dependencies {
        let mut dependencies = Dependencies::default();
        dependencies.on_record(key);
        dependencies
    }

    #[test]
    fn a_piece_depends_on_what_was_read_while_it_was_made() {
        let mut state = state();
        state.reads.of(RepositoryId(2)).on_record("before");
        state.uncacheable = true;
        assert!(start(&mut state) && !start(&mut state), "one at a time");
        state.reads.of(RepositoryId(1)).on_record("meanwhile");
        assert_eq!(state.end_making().unwrap().dependencies, Some(on("meanwhile")));
        let reads: Vec<_> = std::mem::take(&mut state.reads).into_iter().collect();
        assert_eq!(reads, [(RepositoryId(1), on("meanwhile")), (RepositoryId(2), on("before"))]);
        assert!(state.uncacheable && state.end_making().is_none());
    }

    #[test]
    fn what_no_commit_tells_of_is_not_remembered() {
        for use_more in [
            |state: &mut HostState| state.uncacheable = true,
            |state: &mut HostState| state.changes = true,
            |state: &mut HostState| state.reads.of(RepositoryId(2)).on_record("of another"),
        ] {
            let mut state = state();
            assert!(start(&mut state));
            use_more(&mut state);
            assert_eq!(state.end_making().unwrap().dependencies, None);
        }
    }
}
