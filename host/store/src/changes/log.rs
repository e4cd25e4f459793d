//! Change log of each repository: commits of this process, and commits that other servers
//! announced.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use super::dependencies::Dependencies;
use crate::cached_answers::AnswerChange;
use crate::catalog::CatalogChange;
use crate::ids::{CacheName, RepositoryId};
use crate::records::Change;
use crate::records::range::Range;

/// Maximum number of entries of one repository, and of all together.
const OF_ONE: usize = 16 * 1024;
const OF_ALL: usize = 128 * 1024;
/// Maximum number of recent records that the log compares one by one. A reader that was up to date
/// a moment ago has missed only a few.
const RECENT: usize = 16;

/// Content that consecutive commits to one repository touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Revision of the first commit.
    pub(crate) first: u64,
    /// Revision of the last commit.
    pub(crate) last: u64,
    pub(super) records: Vec<Box<str>>,
    pub(super) packages: Vec<Box<str>>,
    pub(super) blobs: Vec<i64>,
    pub(super) answers: Vec<CacheName>,
}

impl Touched {
    /// Changes of the commit with this revision; later commits can be added.
    pub(crate) fn from(first: u64) -> Touched {
        Touched { first, last: first, ..Touched::default() }
    }

    /// Adds a changed record, and the blob rows that the repository no longer names or names again.
    pub(crate) fn record(&mut self, change: &Change, unnamed: &[i64]) {
        if !matches!(change, Change::Require { .. }) {
            self.records.push(change.key().into());
            self.blobs.extend(unnamed);
        }
    }

    /// Adds a package whose catalog entries changed.
    pub(crate) fn package(&mut self, change: &CatalogChange) {
        self.packages.push(change.package().into());
    }

    /// Adds a changed cached upstream response.
    pub(crate) fn answer(&mut self, change: &AnswerChange) {
        self.answers.push(*change.name());
    }
}

/// Arguments of [`ChangeLog::touched`] except for the repository.
#[derive(Clone, Copy)]
pub(crate) struct TouchedRange<'a> {
    pub(crate) range: &'a Range,
    pub(crate) since: u64,
    pub(crate) now: u64,
    pub(crate) most: usize,
}

#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    repositories: RwLock<HashMap<RepositoryId, RepositoryLog>>,
}

/// Log of one repository: everything that commits after `floor`, up to and including `head`,
/// touched.
#[derive(Debug, Default)]
struct RepositoryLog {
    floor: u64,
    head: u64,
    /// Touched records, each with the revision that touched it last.
    records: BTreeMap<Arc<str>, u64>,
    /// Most recently touched records with their revisions. The list is complete for commits after
    /// `recent_floor`.
    recent: VecDeque<(u64, Arc<str>)>,
    recent_floor: u64,
    packages: HashMap<Box<str>, u64>,
    blobs: HashMap<i64, u64>,
    answers: HashMap<CacheName, u64>,
    /// Revision that last changed the catalog of any package.
    catalog: u64,
}

impl ChangeLog {
    /// Implements [`crate::Store::unchanged`] for this log.
    pub(crate) fn unchanged(
        &self,
        repository: RepositoryId,
        since: u64,
        now: u64,
        dependencies: &Dependencies,
    ) -> bool {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        repositories.get(&repository).is_some_and(|log| log.unchanged(since, now, dependencies))
    }

    /// Records of a key range that commits after `since`, up to and including `now`, touched.
    /// `None` if this is not known, or if there are more than `most`.
    pub(crate) fn touched(&self, repository: RepositoryId, query: TouchedRange<'_>) -> Option<Vec<Box<str>>> {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        let log = repositories.get(&repository)?;
        let TouchedRange { range, since, now, most } = query;
        if since < log.floor || now > log.head {
            return None;
        }
        let found = log.touched(range, since, most + 1);
        (found.len() <= most).then_some(found)
    }

    /// The later of the last known revision and `observed`, which the caller read from the
    /// database.
    pub(crate) fn latest(&self, repository: RepositoryId, observed: u64) -> u64 {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        repositories.get(&repository).map_or(observed, |log| log.head.max(observed))
    }

    /// True if commits are missing between the known ones and the revision `first`.
    pub(crate) fn has_gap(&self, repository: RepositoryId, first: u64) -> bool {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        repositories.get(&repository).is_some_and(|log| first > log.head + 1)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        things(&self.repositories.read().unwrap())
    }

    /// Adds commits that are durable.
    pub(crate) fn remember(&self, commits: BTreeMap<RepositoryId, Touched>) {
        let mut repositories = self.repositories.write().unwrap_or_else(PoisonError::into_inner);
        for (repository, touched) in commits {
            repositories.entry(repository).or_default().remember(touched);
        }
        if things(&repositories) > OF_ALL {
            repositories.values_mut().for_each(RepositoryLog::shorten);
            repositories.retain(|_, log| log.len() > 0);
        }
    }
}

fn things(repositories: &HashMap<RepositoryId, RepositoryLog>) -> usize {
    repositories.values().map(RepositoryLog::len).sum()
}

impl RepositoryLog {
    fn remember(&mut self, touched: Touched) {
        let Touched { first, last, records, packages, blobs, answers } = touched;
        if first > self.head + 1 || self.head == 0 {
            // Other processes committed in between, or this is the first known commit. Earlier
            // changes are unknown, so the log starts again.
            let floor = first.saturating_sub(1);
            *self = RepositoryLog { floor, recent_floor: floor, ..RepositoryLog::default() };
        }
        self.head = self.head.max(last);
        if !packages.is_empty() {
            self.catalog = self.catalog.max(last);
        }
        // Treats everything as touched by the last of these commits. Some results are then
        // recomputed unnecessarily, which is harmless.
        let later = |at: &mut u64| *at = (*at).max(last);
        for key in records.into_iter().map(Arc::<str>::from) {
            self.recent.push_back((last, Arc::clone(&key)));
            later(self.records.entry(key).or_default());
        }
        while self.recent.len() > RECENT {
            let gone = self.recent.pop_front().map_or(0, |(at, _)| at);
            self.recent_floor = self.recent_floor.max(gone);
        }
        packages.into_iter().for_each(|name| later(self.packages.entry(name).or_default()));
        blobs.into_iter().for_each(|row| later(self.blobs.entry(row).or_default()));
        answers.into_iter().for_each(|name| later(self.answers.entry(name).or_default()));
        while self.len() > OF_ONE {
            self.shorten();
        }
    }

    fn len(&self) -> usize {
        self.records.len() + self.packages.len() + self.blobs.len() + self.answers.len()
    }

    /// Removes the older half of the commits.
    fn shorten(&mut self) {
        self.floor = self.floor + (self.head - self.floor).div_ceil(2);
        let floor = self.floor;
        self.records.retain(|_, at| *at > floor);
        self.packages.retain(|_, at| *at > floor);
        self.blobs.retain(|_, at| *at > floor);
        self.answers.retain(|_, at| *at > floor);
    }

    fn unchanged(&self, since: u64, now: u64, dependencies: &Dependencies) -> bool {
        if since < self.floor || now > self.head || since > now || dependencies.everything {
            return false;
        }
        let later = |at: Option<&u64>| at.is_some_and(|at| *at > since);
        let Dependencies { packages, all_packages, blobs, answers, .. } = dependencies;
        !(self.record_changed(since, dependencies)
            || packages.iter().any(|name| later(self.packages.get(name)))
            || (*all_packages && self.catalog > since)
            || blobs.iter().any(|row| later(self.blobs.get(row)))
            || answers.iter().any(|name| later(self.answers.get(name))))
    }

    /// Records of a range that commits after `since` touched, ordered by key. If there are more
    /// than `most`, it returns at least `most`.
    fn touched(&self, range: &Range, since: u64, most: usize) -> Vec<Box<str>> {
        if since >= self.recent_floor {
            let later = self.recent.iter().filter(|(at, key)| *at > since && range.has(key));
            let mut found: Vec<Box<str>> = later.map(|(_, key)| Box::from(&**key)).collect();
            found.sort_unstable();
            found.dedup();
            return found;
        }
        if range.from >= range.end {
            return Vec::new();
        }
        let bounds = (Bound::Included(range.from.as_str()), Bound::Excluded(range.end.as_str()));
        let later = self.records.range::<str, _>(bounds).filter(|(_, at)| **at > since);
        later.map(|(key, _)| Box::from(&**key)).take(most).collect()
    }

    fn record_changed(&self, since: u64, Dependencies { records, ranges, .. }: &Dependencies) -> bool {
        if since >= self.recent_floor {
            // The entries may be out of order: the announcement of another server can arrive late.
            let mut recent = self.recent.iter().filter(|(at, _)| *at > since);
            return recent
                .any(|(_, key)| records.contains(&**key) || ranges.iter().any(|range| range.has(key)));
        }
        let in_range = |from: &str, end: &str| {
            let bounds = (Bound::Included(from), Bound::Excluded(end));
            from < end && self.records.range::<str, _>(bounds).any(|(_, at)| *at > since)
        };
        records.iter().any(|key| self.records.get(&**key).is_some_and(|at| *at > since))
            || ranges.iter().any(|range| in_range(&range.from, &range.end))
    }
}
