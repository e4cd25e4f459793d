//! For how long a response is valid: as long as nothing changes that it was made of. That is the settings of the repository and of its
//! members, the rules over versions of the organization, and what of their records the call read and the host read to select the members. What was used of an upstream is valid up
//! to a moment besides: until then it is fresh, or a release is too young.
//!
//! The request has looked the repository and its members up, with the revisions that they have now. Where a revision is another than
//! the one up to which the response is known to hold, the store says whether the commits in between touched what was read.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use packhouse_runtime::Reads;
use packhouse_store::{Dependencies, Reached, RepositoryId, RepositoryRow, Store};
use serde::{Deserialize, Serialize};

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
    good_at: GoodAt,
    lifespan: Lifespan,
}

/// For each repository that was read, the revision up to which nothing was changed of what was read there. All forms in which a response
/// is kept share it.
pub(crate) type GoodAt = Arc<[AtomicU64]>;

/// When a response is valid by the clock, in ms since 1970.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
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

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
}

/// A validity as it is written into a packed response, without what changes in it.
#[derive(Deserialize, Serialize)]
pub(crate) struct PackedValidity<'a> {
    settings: u64,
    policies: Option<i64>,
    members: Vec<(i64, u64)>,
    reads: Vec<(i64, Cow<'a, Dependencies>)>,
    lifespan: Lifespan,
}

impl Validity {
    /// Of a response that was made for a request which saw these rows, or later ones. None where something was read of which a look-up
    /// says nothing.
    pub(crate) fn of(rows: CurrentRows<'_>, reads: Reads, lifespan: Lifespan) -> Option<Self> {
        let reads: Box<[ReadsOf]> = reads
            .into_iter()
            .map(|(repository, dependencies)| ReadsOf { repository, dependencies })
            .collect();
        let good_at = reads.iter().map(|of| Some(AtomicU64::new(rows.revision(of.repository)?)));
        Some(Self {
            settings: rows.row.settings_revision,
            policies: rows.policies,
            members: rows.members.iter().map(MemberSettings::of).collect(),
            good_at: good_at.collect::<Option<_>>()?,
            reads,
            lifespan,
        })
    }

    /// What a packed response says of it, and what it shares with that.
    pub(crate) fn pack(&self) -> (PackedValidity<'_>, &GoodAt) {
        let members = self.members.iter().map(|member| (member.repository.0, member.settings));
        let reads = self.reads.iter().map(|of| (of.repository.0, Cow::Borrowed(&of.dependencies)));
        let packed = PackedValidity {
            settings: self.settings,
            policies: self.policies,
            members: members.collect(),
            reads: reads.collect(),
            lifespan: self.lifespan,
        };
        (packed, &self.good_at)
    }

    /// The validity of what was packed.
    pub(crate) fn unpack(packed: PackedValidity<'_>, good_at: &GoodAt) -> Self {
        let PackedValidity { settings, policies, members, reads, lifespan } = packed;
        let member =
            |(repository, settings)| MemberSettings { repository: RepositoryId(repository), settings };
        let reads_of = |(repository, dependencies): (i64, Cow<'_, Dependencies>)| ReadsOf {
            repository: RepositoryId(repository),
            dependencies: dependencies.into_owned(),
        };
        Self {
            settings,
            policies,
            members: members.into_iter().map(member).collect(),
            reads: reads.into_iter().map(reads_of).collect(),
            good_at: Arc::clone(good_at),
            lifespan,
        }
    }

    /// Whether the response is what a call made at `now`, in ms since 1970, would answer.
    pub(crate) fn holds(&self, store: &Store, rows: CurrentRows<'_>, now: i64) -> bool {
        self.lifespan.covers(now)
            && self.settings == rows.row.settings_revision
            && self.policies == rows.policies
            && self.members.len() == rows.members.len()
            && self.members.iter().zip(rows.members).all(|(was, now)| *was == MemberSettings::of(now))
            && self.reads.iter().zip(&*self.good_at).all(|(reads, good_at)| reads.hold(good_at, store, rows))
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|reads| reads.dependencies.bytes()).sum();
        reads + size_of_val(&*self.members) + size_of_val(&*self.reads) + size_of_val(&*self.good_at)
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
            good_at: Arc::default(),
            lifespan: Lifespan::default(),
        }
    }
}

impl ReadsOf {
    fn hold(&self, good_at: &AtomicU64, store: &Store, rows: CurrentRows<'_>) -> bool {
        let Some(now) = rows.revision(self.repository) else { return false };
        let known = good_at.load(Ordering::Relaxed);
        // A request that looked its repository up before another one did.
        if known >= now {
            return true;
        }
        let holds = store.unchanged(self.repository, known, now, &self.dependencies);
        if holds {
            good_at.fetch_max(now, Ordering::Relaxed);
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
