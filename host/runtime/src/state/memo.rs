//! The piece that a call is making, and its reads meanwhile.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use std::sync::Arc;

use packhouse_store::{Dependencies, ReadPoint, RepositoryId};

use crate::reads::Reads;
use crate::state::HostState;

/// Handle of the one piece in progress.
pub struct MakingRep;

/// A piece that is in progress.
pub(crate) struct Making {
    pub(crate) read_point: ReadPoint,
    pub(crate) settings: Arc<str>,
    pub(crate) name: String,
    /// Earlier reads of the call.
    reads: Reads,
    /// True if the call had already used data whose changes no commit announces.
    uncacheable: bool,
    /// Time until which the data used earlier is valid.
    until: Option<i64>,
    /// How often the call had used replies of upstreams.
    replies: u64,
}

/// A finished piece with its dependencies.
pub(crate) struct FinishedPiece {
    pub(crate) making: Making,
    /// Dependencies of the piece. If they are `None`, the piece must not be memoized.
    pub(crate) dependencies: Option<Dependencies>,
}

impl HostState {
    /// Starts to note reads for a piece. Returns false if another piece is in progress.
    pub(crate) fn start_making(&mut self, read_point: ReadPoint, settings: Arc<str>, name: String) -> bool {
        if self.making.is_some() {
            return false;
        }
        self.note_clock_and_random();
        let (reads, uncacheable) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.uncacheable));
        let (until, replies) = (self.until.take(), self.replies.use_count());
        self.making = Some(Making { read_point, settings, name, reads, uncacheable, until, replies });
        true
    }

    /// Ends the piece. Adds the piece's reads to the reads of the call.
    pub(crate) fn end_making(&mut self) -> Option<FinishedPiece> {
        let mut making = self.making.take()?;
        self.note_clock_and_random();
        let reads = std::mem::replace(&mut self.reads, std::mem::take(&mut making.reads));
        // A commit can invalidate a piece, but the passing of time cannot. So a piece with a time
        // limit is not memoized.
        let timed = self.until.is_some() || self.replies.use_count() != making.replies;
        self.note_until(making.until);
        let used_more = self.uncacheable || timed;
        self.uncacheable |= making.uncacheable;
        self.reads.extend(reads.clone());
        let dependencies = only(reads, making.read_point.repository).filter(|_| !used_more && !self.changes);
        Some(FinishedPiece { making, dependencies })
    }
}

/// Returns the reads if all of them were of this repository.
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
        state.start_making(
            ReadPoint { repository: RepositoryId(1), revision: 7 },
            "{}".into(),
            "piece".to_owned(),
        )
    }

    fn on(key: &str) -> Dependencies {
        let mut dependencies = Dependencies::default();
        dependencies.on_record(key);
        dependencies
    }

    #[test]
    fn a_piece_depends_on_the_reads_while_it_was_made() {
        let mut state = state();
        state.reads.of(RepositoryId(2)).on_record("before");
        state.uncacheable = true;
        assert!(start(&mut state) && !start(&mut state), "only one piece at a time");
        state.reads.of(RepositoryId(1)).on_record("meanwhile");
        assert_eq!(state.end_making().unwrap().dependencies, Some(on("meanwhile")));
        let reads: Vec<_> = std::mem::take(&mut state.reads).into_iter().collect();
        assert_eq!(reads, [(RepositoryId(1), on("meanwhile")), (RepositoryId(2), on("before"))]);
        assert!(state.uncacheable && state.end_making().is_none());
    }

    #[test]
    fn a_piece_that_a_commit_cannot_invalidate_is_not_memoized() {
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
