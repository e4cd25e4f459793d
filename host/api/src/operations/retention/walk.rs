//! Walk over all versions that finds those that a policy deletes. It takes one package after the
//! other, and in each the latest publication first. Pure: it does not access the store. It
//! remembers only the candidates and the versions that others need.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use packhouse_runtime::{Folding, NeededVersion, VersionFacts};

use super::rule::{Rule, RuleInput};

/// Maximum number of candidates of one evaluation; the rest is left for the next one.
const MAX_CANDIDATES: usize = 200_000;

/// Version or unlisted content that may be deleted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct StoredVersion {
    /// Index of its repository in the evaluation.
    pub(super) repository: usize,
    pub(super) package: String,
    pub(super) version: String,
    /// Time in ms since 1970, if known.
    pub(super) published_at: Option<i64>,
    pub(super) last_downloaded_at: Option<i64>,
    pub(super) bytes: u64,
    /// Time of its first listing; `None` if it was never listed.
    pub(super) first_listed_at: Option<i64>,
}

impl StoredVersion {
    pub(super) fn rule_input<'a>(&'a self, facts: &VersionFacts) -> RuleInput<'a> {
        RuleInput {
            package: &self.package,
            version: &self.version,
            published_at: self.published_at,
            last_downloaded_at: self.last_downloaded_at,
            counted: self.first_listed_at.is_some(),
            tagged: facts.tagged,
            prerelease: facts.prerelease,
        }
    }
}

/// Version or unlisted content that is to be deleted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Candidate {
    pub(super) stored: StoredVersion,
    pub(super) reason: String,
    pub(super) needs: Vec<NeededVersion>,
}

/// Version in an evaluated repository.
pub(super) type VersionKey = (usize, NeededVersion);

#[derive(Debug, Default)]
pub(super) struct WalkResult {
    /// Versions that one run deletes, in order; a version comes after those that need it.
    pub(super) items: Vec<Candidate>,
    /// Number of matching versions that are kept.
    pub(super) retained: u64,
    /// Number of versions to delete, without the limit of one run.
    pub(super) versions: u64,
    /// Total size of these versions in bytes.
    pub(super) bytes: u64,
    /// True if it takes more than one run.
    pub(super) truncated: bool,
    /// Versions that a remaining version needs.
    pub(super) needed: HashSet<VersionKey>,
}

/// Newest units of a package, collected during a walk.
#[derive(Debug, Default)]
pub(super) struct Newest {
    units: HashSet<String>,
}

impl Newest {
    /// Returns whether a version is among the `most` newest. Must be called for each version in
    /// turn, the latest publication first.
    pub(super) fn admit(&mut self, most: u32, version: &str, facts: &VersionFacts) -> bool {
        let unit = if facts.unit.is_empty() { version } else { facts.unit.as_str() };
        if self.units.contains(unit) {
            return true;
        }
        if self.units.len() >= most as usize {
            return false;
        }
        self.units.insert(unit.to_owned())
    }

    /// Returns whether a version is among the collected ones.
    pub(super) fn contains(&self, version: &str, facts: &VersionFacts) -> bool {
        self.units.contains(if facts.unit.is_empty() { version } else { facts.unit.as_str() })
    }
}

pub(super) struct Walk<'a> {
    rule: &'a Rule,
    now: i64,
    folding: Folding,
    newest: Newest,
    candidates: Vec<Candidate>,
    retained: u64,
    overflow: u64,
    overflow_bytes: u64,
    needed: HashSet<VersionKey>,
}

impl<'a> Walk<'a> {
    /// Starts a walk with this rule at `now` (ms since 1970).
    pub(super) fn new(rule: &'a Rule, now: i64) -> Walk<'a> {
        Walk {
            rule,
            now,
            folding: Folding::None,
            newest: Newest::default(),
            candidates: Vec::new(),
            retained: 0,
            overflow: 0,
            overflow_bytes: 0,
            needed: HashSet::new(),
        }
    }

    /// Begins another repository. `folding` is how its format folds names.
    pub(super) fn begin_repository(&mut self, folding: Folding) {
        self.folding = folding;
    }

    pub(super) fn begin_package(&mut self) {
        self.newest = Newest::default();
    }

    /// Adds another version of the package.
    pub(super) fn add(&mut self, stored: StoredVersion, facts: VersionFacts) {
        if facts.follows {
            // It is deleted together with another version.
            self.mark_needed(stored.repository, facts.needs);
            return;
        }
        let is_newest =
            self.rule.keep.newest.is_some_and(|most| self.newest.admit(most, &stored.version, &facts));
        let input = stored.rule_input(&facts);
        if !self.rule.matches(self.folding, &input) {
            self.mark_needed(stored.repository, facts.needs);
            return;
        }
        let reason = match is_newest || self.rule.always_keeps(&stored.version) {
            true => None,
            false => self.rule.deletion_reason(&input, self.now),
        };
        match reason {
            Some(reason) if self.candidates.len() < MAX_CANDIDATES => {
                self.candidates.push(Candidate { stored, reason, needs: facts.needs });
            }
            Some(_) => {
                self.overflow += 1;
                self.overflow_bytes = self.overflow_bytes.saturating_add(stored.bytes);
                self.mark_needed(stored.repository, facts.needs);
            }
            None => {
                self.retained += 1;
                self.mark_needed(stored.repository, facts.needs);
            }
        }
    }

    /// Records that a remaining version needs these.
    fn mark_needed(&mut self, repository: usize, needs: Vec<NeededVersion>) {
        self.needed.extend(needs.into_iter().map(|needed| (repository, needed)));
    }

    /// Returns the result. `most` is the limit of one run.
    pub(super) fn finish(mut self, most: usize) -> WalkResult {
        let before = self.candidates.len();
        spare_needed(&mut self.candidates, &mut self.needed);
        let retained = self.retained + (before - self.candidates.len()) as u64;
        let versions = self.candidates.len() as u64 + self.overflow;
        let bytes =
            self.candidates.iter().fold(self.overflow_bytes, |sum, one| sum.saturating_add(one.stored.bytes));
        let mut items = in_order(self.candidates);
        let left = items.split_off(items.len().min(most));
        // Versions that are left for another run stay in the meantime. In a cycle of needs, they
        // may need a version that this run would delete.
        for one in left {
            self.needed.extend(one.needs.into_iter().map(|needed| (one.stored.repository, needed)));
        }
        spare_needed(&mut items, &mut self.needed);
        let truncated = (items.len() as u64) < versions;
        WalkResult { items, retained, versions, bytes, truncated, needed: self.needed }
    }
}

pub(super) fn key(stored: &StoredVersion) -> VersionKey {
    (stored.repository, NeededVersion { name: stored.package.clone(), version: stored.version.clone() })
}

/// Removes the candidates that remaining versions need, directly or indirectly.
fn spare_needed(candidates: &mut Vec<Candidate>, needed: &mut HashSet<VersionKey>) {
    if needed.is_empty() {
        return;
    }
    let index: HashMap<VersionKey, usize> =
        candidates.iter().enumerate().map(|(at, one)| (key(&one.stored), at)).collect();
    let mut spared = vec![false; candidates.len()];
    let mut next: Vec<usize> = needed.iter().filter_map(|needed| index.get(needed).copied()).collect();
    while let Some(at) = next.pop() {
        let (Some(one), Some(spared)) = (candidates.get(at), spared.get_mut(at)) else { continue };
        if std::mem::replace(spared, true) {
            continue;
        }
        for needs in &one.needs {
            let needs = (one.stored.repository, needs.clone());
            next.extend(index.get(&needs).copied());
            needed.insert(needs);
        }
    }
    let mut spared = spared.into_iter();
    candidates.retain(|_| !spared.next().unwrap_or_default());
}

/// Sorts by age, the oldest first, but a version comes after those that need it. A cycle of needs
/// starts with its oldest version.
fn in_order(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let rank = |one: &Candidate| (one.stored.published_at, one.stored.repository);
    candidates.sort_by(|a, b| {
        let names = (&a.stored.package, &a.stored.version).cmp(&(&b.stored.package, &b.stored.version));
        rank(a).cmp(&rank(b)).then(names)
    });
    if candidates.iter().all(|one| one.needs.is_empty()) {
        return candidates;
    }
    let index: HashMap<VersionKey, usize> =
        candidates.iter().enumerate().map(|(at, one)| (key(&one.stored), at)).collect();
    let needs: Vec<Vec<usize>> = candidates
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let of = |needed: &NeededVersion| index.get(&(one.stored.repository, needed.clone())).copied();
            one.needs.iter().filter_map(of).filter(|other| *other != at).collect()
        })
        .collect();
    drop(index);
    let order = topological_order(&needs);
    let mut slots: Vec<Option<Candidate>> = candidates.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| slots.get_mut(at).and_then(Option::take)).collect()
}

/// Topological order of indexes: each comes before those that it needs, except in cycles.
fn topological_order(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut dependents = vec![0_usize; needs.len()];
    for at in needs.iter().flatten() {
        if let Some(count) = dependents.get_mut(*at) {
            *count += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        dependents.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| Reverse(at)).collect();
    let mut done = vec![false; needs.len()];
    let mut order = Vec::with_capacity(needs.len());
    let mut oldest = 0..needs.len();
    loop {
        let at = match ready.pop() {
            Some(Reverse(at)) => at,
            // The rest is in cycles.
            None => match oldest.find(|at| done.get(*at) == Some(&false)) {
                Some(at) => at,
                None => return order,
            },
        };
        match done.get_mut(at) {
            Some(done) if !*done => *done = true,
            _ => continue,
        }
        order.push(at);
        for other in needs.get(at).into_iter().flatten() {
            let Some(count) = dependents.get_mut(*other) else { continue };
            *count = count.saturating_sub(1);
            if *count == 0 && done.get(*other) == Some(&false) {
                ready.push(Reverse(*other));
            }
        }
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
