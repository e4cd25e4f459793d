//! An index must list every version that must exist, and no version that cannot exist. At the end,
//! each server's index must list exactly the versions that this server serves.

use super::paths::{Path, paths};
use super::{Rule, Violation, violation};
use crate::history::{Event, Operation, Outcome, Way};
use std::collections::{BTreeMap, BTreeSet};

/// Finds versions that are listed wrongly or missing.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let paths = paths(events);
    let mut packages = BTreeMap::<&str, Vec<(&str, &Path<'_>)>>::new();
    for (path, known) in &paths {
        let (package, version) = path.rsplit_once('/').expect("a path has a version");
        packages.entry(package).or_default().push((version, known));
    }
    let served = served(events);
    let mut found = Vec::new();
    for event in events {
        let Operation::Index { package, listed } = &event.what else { continue };
        // A missing index (404) counts as an empty one.
        if !matches!(event.outcome, Outcome::Done | Outcome::NotThere) {
            continue;
        }
        let versions = packages.get(package.as_str()).map(Vec::as_slice).unwrap_or_default();
        for (version, path) in versions {
            if let Some(why) = wrong(event, listed.contains(*version), path) {
                found.push(violation(Rule::Index, event, format!("{version} {why}")));
            }
        }
        for version in listed.iter().filter(|version| !versions.iter().any(|(known, _)| known == version)) {
            found.push(violation(Rule::Index, event, format!("{version} was never published")));
        }
        if let (true, Way::Server(server)) = (event.last, event.way) {
            let there = served.get(&(server, package.as_str())).cloned().unwrap_or_default();
            for version in listed.symmetric_difference(&there) {
                let why = if there.contains(version) {
                    "is served but not listed"
                } else {
                    "is listed but not served"
                };
                found.push(violation(Rule::Index, event, format!("{version} {why}")));
            }
        }
    }
    found
}

fn wrong(index: &Event, listed: bool, path: &Path<'_>) -> Option<&'static str> {
    if listed {
        if path.perhaps_from().is_none_or(|begun| begun > index.ended) {
            return Some("is listed before it was published");
        }
        return path
            .gone_from()
            .is_some_and(|gone| index.begun >= gone)
            .then_some("is listed after its deletion");
    }
    let there = path.there_from().is_some_and(|there| index.begun >= there);
    let not_gone = path.perhaps_gone_from().is_none_or(|gone| gone > index.ended);
    (there && not_gone).then_some("was acknowledged or read, but is not listed")
}

/// The versions that the last reads found, by server and package.
fn served(events: &[Event]) -> BTreeMap<(usize, &str), BTreeSet<String>> {
    let mut served = BTreeMap::<_, BTreeSet<String>>::new();
    for event in events.iter().filter(|event| event.last && event.outcome == Outcome::Done) {
        let (Operation::Read { path, .. }, Way::Server(server)) = (&event.what, event.way) else { continue };
        let (package, version) = path.rsplit_once('/').expect("a path has a version");
        served.entry((server, package)).or_default().insert(version.to_owned());
    }
    served
}
