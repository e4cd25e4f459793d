//! Validity of a response: a response is valid until something changes from which it was made. This
//! includes the settings of the repository and its members, and the organization's policy rules. It
//! also includes the records that the call read, or that the host read to select the members. Data
//! from an upstream are also limited in time: until they expire, or until a release is old enough.
//!
//! The request has looked up the current revisions of the repository and its members. If such a
//! revision differs from the last one at which the response was valid, the store checks the commits
//! in between. The response stays valid if these commits changed nothing that it read.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use packhouse_runtime::Reads;
use packhouse_store::{Dependencies, Reached, RepositoryId, RepositoryRow, Store};
use serde::{Deserialize, Serialize};

/// Rows of a request's repository and all its members, from the look-up of the credential.
#[derive(Clone, Copy)]
pub(crate) struct CurrentRows<'a> {
    pub row: &'a RepositoryRow,
    /// All members of a group, including those that the caller may not read: their packages hide
    /// packages of other members.
    pub members: &'a [Reached],
    /// Number of the organization's policy rules.
    pub policies: Option<i64>,
}

impl CurrentRows<'_> {
    fn revision(&self, repository: RepositoryId) -> Option<u64> {
        let mut rows = std::iter::once(self.row).chain(self.members.iter().map(|member| &member.row));
        rows.find(|row| row.id == repository).map(|row| row.revision)
    }
}

/// Facts that decide whether a response is still valid.
#[derive(Debug)]
pub(crate) struct Validity {
    settings: u64,
    policies: Option<i64>,
    members: Box<[MemberSettings]>,
    reads: Box<[ReadsOf]>,
    valid_up_to: ValidUpTo,
    lifespan: Lifespan,
}

/// For each repository that the response read: the last revision at which the read data were
/// unchanged. All cached forms of a response share this list.
pub(crate) type ValidUpTo = Arc<[AtomicU64]>;

/// Time range in which a response is valid, in ms since 1970.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Lifespan {
    /// Time of the request for which the response was made.
    pub from: i64,
    /// Time at which the response may become stale; `None` if the response does not depend on time.
    pub until: Option<i64>,
}

impl Lifespan {
    /// Reports whether `now` is in this range. A time before `from` means that the clock was set
    /// back, and then the response is treated as stale.
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

/// Data that the response read in one repository.
#[derive(Debug)]
struct ReadsOf {
    repository: RepositoryId,
    dependencies: Dependencies,
}

/// The validity in a packed response, without the shared revisions.
#[derive(Deserialize, Serialize)]
pub(crate) struct PackedValidity<'a> {
    settings: u64,
    policies: Option<i64>,
    members: Vec<(i64, u64)>,
    reads: Vec<(i64, Cow<'a, Dependencies>)>,
    lifespan: Lifespan,
}

impl Validity {
    /// Returns the validity of a response to a request that saw these rows or later ones. Returns
    /// `None` if the response read a repository that the look-up does not cover.
    pub(crate) fn of(rows: CurrentRows<'_>, reads: Reads, lifespan: Lifespan) -> Option<Self> {
        let reads: Box<[ReadsOf]> = reads
            .into_iter()
            .map(|(repository, dependencies)| ReadsOf { repository, dependencies })
            .collect();
        let valid_up_to = reads.iter().map(|of| Some(AtomicU64::new(rows.revision(of.repository)?)));
        Some(Self {
            settings: rows.row.settings_revision,
            policies: rows.policies,
            members: rows.members.iter().map(MemberSettings::of).collect(),
            valid_up_to: valid_up_to.collect::<Option<_>>()?,
            reads,
            lifespan,
        })
    }

    /// Returns the packed validity, and the revisions that it shares.
    pub(crate) fn pack(&self) -> (PackedValidity<'_>, &ValidUpTo) {
        let members = self.members.iter().map(|member| (member.repository.0, member.settings));
        let reads = self.reads.iter().map(|of| (of.repository.0, Cow::Borrowed(&of.dependencies)));
        let packed = PackedValidity {
            settings: self.settings,
            policies: self.policies,
            members: members.collect(),
            reads: reads.collect(),
            lifespan: self.lifespan,
        };
        (packed, &self.valid_up_to)
    }

    pub(crate) fn unpack(packed: PackedValidity<'_>, valid_up_to: &ValidUpTo) -> Self {
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
            valid_up_to: Arc::clone(valid_up_to),
            lifespan,
        }
    }

    /// Reports whether a call at `now`, in ms since 1970, would return the same response.
    pub(crate) fn holds(&self, store: &Store, rows: CurrentRows<'_>, now: i64) -> bool {
        self.lifespan.covers(now)
            && self.settings == rows.row.settings_revision
            && self.policies == rows.policies
            && self.members.len() == rows.members.len()
            && self.members.iter().zip(rows.members).all(|(was, now)| *was == MemberSettings::of(now))
            && self
                .reads
                .iter()
                .zip(&*self.valid_up_to)
                .all(|(reads, valid_up_to)| reads.hold(valid_up_to, store, rows))
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|reads| reads.dependencies.bytes()).sum();
        reads + size_of_val(&*self.members) + size_of_val(&*self.reads) + size_of_val(&*self.valid_up_to)
    }
}

#[cfg(test)]
impl Validity {
    /// Returns the validity of a response that read no records.
    pub(crate) fn of_settings(settings: u64) -> Self {
        Self {
            settings,
            policies: None,
            members: Box::default(),
            reads: Box::default(),
            valid_up_to: Arc::default(),
            lifespan: Lifespan::default(),
        }
    }
}

impl ReadsOf {
    fn hold(&self, valid_up_to: &AtomicU64, store: &Store, rows: CurrentRows<'_>) -> bool {
        let Some(now) = rows.revision(self.repository) else { return false };
        let known = valid_up_to.load(Ordering::Relaxed);
        // Another request, which looked the repository up later than this one, has already checked
        // this revision.
        if known >= now {
            return true;
        }
        let holds = store.unchanged(self.repository, known, now, &self.dependencies);
        if holds {
            valid_up_to.fetch_max(now, Ordering::Relaxed);
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
        assert!(covers(None, 0) && covers(None, i64::MAX), "a lifespan without an end covers every time");
        assert!(!covers(Some(10), 10), "a response that is never fresh is not reused");
    }
}
