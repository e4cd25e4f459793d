//! For how long a response is valid: as long as nothing changes that it was made of. That is the settings of the repository and of its
//! members, the rules over versions of the organization, and what of their records the call read and the host read to select the members. What was used of an upstream is valid up
//! to a moment besides: until then it is fresh, or a release is too young.
//!
//! The request has looked the repository and its members up, with the revisions that they have now. Where a revision is another than
//! the one up to which the response is known to hold, the store says whether the commits in between touched what was read.

use std::sync::atomic::{AtomicU64, Ordering};

use packhouse_runtime::Reads;
use packhouse_store::{Dependencies, Reached, RepositoryId, RepositoryRow, Store};

/// A request's repository and all its members, as they were looked up with the credential.
#[derive(Clone, Copy)]
pub(crate) struct CurrentRows<'a> {
    /// The repository.
    pub row: &'a RepositoryRow,
    /// Its members, whoever may read them: what they hold hides what others have.
    pub members: &'a [Reached],
    /// The number of the organization's rules over versions.
    pub policies: Option<i64>,
}

impl CurrentRows<'_> {
    fn revision(&self, repository: RepositoryId) -> Option<u64> {
        let mut rows = std::iter::once(self.row).chain(self.members.iter().map(|member| &member.row));
        rows.find(|row| row.id == repository).map(|row| row.revision)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Validity {
    settings: u64,
    policies: Option<i64>,
    members: Box<[MemberSettings]>,
    reads: Box<[ReadsOf]>,
    lifespan: Lifespan,
}

/// When a response is valid by the clock, in ms since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifespan {
    /// When the request was judged that it was made for.
    pub from: i64,
    /// From when on it may be another; none where time changes nothing.
    pub until: Option<i64>,
}

impl Lifespan {
    /// A moment before its beginning means that the clock was set back: then nothing is known.
    fn covers(self, now: i64) -> bool {
        self.until.is_none_or(|until| self.from <= now && now < until)
    }
}

#[derive(Debug, Eq, PartialEq)]
struct MemberSettings {
    repository: RepositoryId,
    settings: u64,
}

impl MemberSettings {
    fn of(member: &Reached) -> Self {
        Self { repository: member.row.id, settings: member.row.settings_revision }
    }
}

/// What was read of one repository.
#[derive(Debug)]
struct ReadsOf {
    repository: RepositoryId,
    dependencies: Dependencies,
    /// The revision up to which nothing of it was changed.
    good_at: AtomicU64,
}

impl Validity {
    /// Of a response that was made for a request which saw these rows, or later ones. None where something was read of which a look-up
    /// says nothing.
    pub(crate) fn of(rows: CurrentRows<'_>, reads: Reads, lifespan: Lifespan) -> Option<Self> {
        let reads_of = |(repository, dependencies)| {
            let good_at = AtomicU64::new(rows.revision(repository)?);
            Some(ReadsOf { repository, dependencies, good_at })
        };
        Some(Self {
            settings: rows.row.settings_revision,
            policies: rows.policies,
            members: rows.members.iter().map(MemberSettings::of).collect(),
            reads: reads.into_iter().map(reads_of).collect::<Option<_>>()?,
            lifespan,
        })
    }

    /// Whether the response is what a call made at `now`, in ms since 1970, would answer.
    pub(crate) fn holds(&self, store: &Store, rows: CurrentRows<'_>, now: i64) -> bool {
        self.lifespan.covers(now)
            && self.settings == rows.row.settings_revision
            && self.policies == rows.policies
            && self.members.len() == rows.members.len()
            && self.members.iter().zip(rows.members).all(|(was, now)| *was == MemberSettings::of(now))
            && self.reads.iter().all(|reads| reads.hold(store, rows))
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|reads| reads.dependencies.bytes()).sum();
        reads + size_of_val(&*self.members) + size_of_val(&*self.reads)
    }
}

#[cfg(test)]
impl Validity {
    /// Of a response that nothing was read for.
    pub(crate) fn of_settings(settings: u64) -> Self {
        Self {
            settings,
            policies: None,
            members: Box::default(),
            reads: Box::default(),
            lifespan: Lifespan::default(),
        }
    }
}

impl ReadsOf {
    fn hold(&self, store: &Store, rows: CurrentRows<'_>) -> bool {
        let Some(now) = rows.revision(self.repository) else { return false };
        let good_at = self.good_at.load(Ordering::Relaxed);
        // A request that looked its repository up before another one did.
        if good_at >= now {
            return true;
        }
        let holds = store.unchanged(self.repository, good_at, now, &self.dependencies);
        if holds {
            self.good_at.fetch_max(now, Ordering::Relaxed);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifespan_ends_at_its_moment_and_when_the_clock_was_set_back() {
        let covers = |until, now| Lifespan { from: 10, until }.covers(now);
        for (now, covered) in [(9, false), (10, true), (19, true), (20, false)] {
            assert_eq!(covers(Some(20), now), covered, "{now}");
        }
        assert!(covers(None, 0) && covers(None, i64::MAX), "where time changes nothing");
        assert!(!covers(Some(10), 10), "what is never fresh is made anew each time");
    }
}
