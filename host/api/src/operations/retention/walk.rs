//! What a policy deletes of all that it is shown, one version after the other: packages one by one, of each the latest publication
//! first. Pure: it knows of no store. What is kept of it is what may go, and what others cannot be used without.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use packhouse_runtime::{Folding, NeededVersion, VersionFacts};

use super::rule::{Judged, Rule};

/// What one evaluation holds at most: what is beyond it stays for the next.
const MOST: usize = 200_000;

/// Something that may be deleted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    /// Which of the evaluated repositories it is in.
    pub(super) place: usize,
    pub(super) package: String,
    pub(super) version: String,
    /// In ms since 1970; none where nobody knows.
    pub(super) published_at: Option<i64>,
    pub(super) last_downloaded_at: Option<i64>,
    pub(super) bytes: u64,
    /// When it was shown first; none for what never was.
    pub(super) shown_at: Option<i64>,
}

impl Seen {
    /// As a rule judges it.
    pub(super) fn judged<'a>(&'a self, facts: &VersionFacts) -> Judged<'a> {
        Judged {
            package: &self.package,
            version: &self.version,
            published_at: self.published_at,
            last_downloaded_at: self.last_downloaded_at,
            counted: self.shown_at.is_some(),
            tagged: facts.tagged,
            prerelease: facts.prerelease,
        }
    }
}

/// Something that is to be deleted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Condemned {
    pub(super) seen: Seen,
    pub(super) because: String,
    pub(super) needs: Vec<NeededVersion>,
}

/// A version of a repository.
pub(super) type Key = (usize, NeededVersion);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What one run deletes, in the order in which it does: what others need behind them.
    pub(super) items: Vec<Condemned>,
    /// What the policy is about and does not delete.
    pub(super) kept: u64,
    /// What it would delete if one run could delete all of it.
    pub(super) versions: u64,
    /// Of these.
    pub(super) bytes: u64,
    /// Whether one run does not delete all of it.
    pub(super) truncated: bool,
    /// What something that stays cannot be used without.
    pub(super) needed: HashSet<Key>,
}

/// The newest of a package, as they come by.
#[derive(Debug, Default)]
pub(super) struct Newest {
    units: HashSet<String>,
}

impl Newest {
    /// Whether a version is among so many newest; each is asked about in its turn, the latest publication first.
    pub(super) fn has(&mut self, most: u32, version: &str, facts: &VersionFacts) -> bool {
        let unit = if facts.unit.is_empty() { version } else { facts.unit.as_str() };
        if self.units.contains(unit) {
            return true;
        }
        if self.units.len() >= most as usize {
            return false;
        }
        self.units.insert(unit.to_owned())
    }

    /// Whether a version is one of those that came by.
    pub(super) fn holds(&self, version: &str, facts: &VersionFacts) -> bool {
        self.units.contains(if facts.unit.is_empty() { version } else { facts.unit.as_str() })
    }
}

/// An evaluation under way.
pub(super) struct Walk<'a> {
    rule: &'a Rule,
    now: i64,
    folding: Folding,
    newest: Newest,
    condemned: Vec<Condemned>,
    kept: u64,
    overflow: u64,
    overflow_bytes: u64,
    needed: HashSet<Key>,
}

impl<'a> Walk<'a> {
    /// One of this rule, at this time.
    pub(super) fn new(rule: &'a Rule, now: i64) -> Walk<'a> {
        Walk {
            rule,
            now,
            folding: Folding::None,
            newest: Newest::default(),
            condemned: Vec::new(),
            kept: 0,
            overflow: 0,
            overflow_bytes: 0,
            needed: HashSet::new(),
        }
    }

    /// Another repository begins, whose format folds names so.
    pub(super) fn begin_repository(&mut self, folding: Folding) {
        self.folding = folding;
    }

    /// Another package begins.
    pub(super) fn begin_package(&mut self) {
        self.newest = Newest::default();
    }

    /// Another version of the package.
    pub(super) fn see(&mut self, seen: Seen, facts: VersionFacts) {
        if facts.follows {
            // It goes with another one, whose turn it is or was.
            self.hold(seen.place, facts.needs);
            return;
        }
        let is_newest =
            self.rule.keep.newest.is_some_and(|most| self.newest.has(most, &seen.version, &facts));
        let judged = seen.judged(&facts);
        if !self.rule.matches(self.folding, &judged) {
            self.hold(seen.place, facts.needs);
            return;
        }
        let because = match is_newest || self.rule.keeps(&seen.version) {
            true => None,
            false => self.rule.condemns(&judged, self.now),
        };
        match because {
            Some(because) if self.condemned.len() < MOST => {
                self.condemned.push(Condemned { seen, because, needs: facts.needs });
            }
            Some(_) => {
                self.overflow += 1;
                self.overflow_bytes = self.overflow_bytes.saturating_add(seen.bytes);
                self.hold(seen.place, facts.needs);
            }
            None => {
                self.kept += 1;
                self.hold(seen.place, facts.needs);
            }
        }
    }

    /// What stays needs these.
    fn hold(&mut self, place: usize, needs: Vec<NeededVersion>) {
        self.needed.extend(needs.into_iter().map(|needed| (place, needed)));
    }

    /// What came of it; a run deletes so many at most.
    pub(super) fn finish(mut self, most: usize) -> Found {
        let before = self.condemned.len();
        spare_needed(&mut self.condemned, &mut self.needed);
        let kept = self.kept + (before - self.condemned.len()) as u64;
        let versions = self.condemned.len() as u64 + self.overflow;
        let bytes =
            self.condemned.iter().fold(self.overflow_bytes, |sum, one| sum.saturating_add(one.seen.bytes));
        let mut items = in_order(self.condemned);
        let left = items.split_off(items.len().min(most));
        // What is left for another run stays meanwhile: in a circle of needs something before it may be what it needs.
        for one in left {
            self.needed.extend(one.needs.into_iter().map(|needed| (one.seen.place, needed)));
        }
        spare_needed(&mut items, &mut self.needed);
        let truncated = (items.len() as u64) < versions;
        Found { items, kept, versions, bytes, truncated, needed: self.needed }
    }
}

/// The key of something that is to be deleted.
pub(super) fn key(seen: &Seen) -> Key {
    (seen.place, NeededVersion { name: seen.package.clone(), version: seen.version.clone() })
}

/// Takes out what others that stay need, and what these need, to the end.
fn spare_needed(condemned: &mut Vec<Condemned>, needed: &mut HashSet<Key>) {
    if needed.is_empty() {
        return;
    }
    let index: HashMap<Key, usize> =
        condemned.iter().enumerate().map(|(at, one)| (key(&one.seen), at)).collect();
    let mut spared = vec![false; condemned.len()];
    let mut next: Vec<usize> = needed.iter().filter_map(|needed| index.get(needed).copied()).collect();
    while let Some(at) = next.pop() {
        let (Some(one), Some(spared)) = (condemned.get(at), spared.get_mut(at)) else { continue };
        if std::mem::replace(spared, true) {
            continue;
        }
        for needs in &one.needs {
            let needs = (one.seen.place, needs.clone());
            next.extend(index.get(&needs).copied());
            needed.insert(needs);
        }
    }
    let mut spared = spared.into_iter();
    condemned.retain(|_| !spared.next().unwrap_or_default());
}

/// The oldest first, and what others of them need behind those. Of a circle of needs the oldest comes first.
fn in_order(mut condemned: Vec<Condemned>) -> Vec<Condemned> {
    let rank = |one: &Condemned| (one.seen.published_at, one.seen.place);
    condemned.sort_by(|a, b| {
        let names = (&a.seen.package, &a.seen.version).cmp(&(&b.seen.package, &b.seen.version));
        rank(a).cmp(&rank(b)).then(names)
    });
    if condemned.iter().all(|one| one.needs.is_empty()) {
        return condemned;
    }
    let index: HashMap<Key, usize> =
        condemned.iter().enumerate().map(|(at, one)| (key(&one.seen), at)).collect();
    let needs: Vec<Vec<usize>> = condemned
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let of = |needed: &NeededVersion| index.get(&(one.seen.place, needed.clone())).copied();
            one.needs.iter().filter_map(of).filter(|other| *other != at).collect()
        })
        .collect();
    drop(index);
    let order = sorted(&needs);
    let mut slots: Vec<Option<Condemned>> = condemned.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| slots.get_mut(at).and_then(Option::take)).collect()
}

/// The numbers of what needs others, in their order, each before those that it needs as far as that can be.
fn sorted(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut wanted = vec![0_usize; needs.len()];
    for at in needs.iter().flatten() {
        if let Some(count) = wanted.get_mut(*at) {
            *count += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        wanted.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| Reverse(at)).collect();
    let mut done = vec![false; needs.len()];
    let mut order = Vec::with_capacity(needs.len());
    let mut oldest = 0..needs.len();
    loop {
        let at = match ready.pop() {
            Some(Reverse(at)) => at,
            // What is left is in circles.
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
            let Some(count) = wanted.get_mut(*other) else { continue };
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
