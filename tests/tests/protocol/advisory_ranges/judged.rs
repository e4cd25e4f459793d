//! Evaluation of an OSV record as OSV's specification describes it. An ecosystem's own tool
//! compares the versions. This implementation is independent of the program's, so that it does not
//! repeat a bug of the program.

use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The part of a record about one package.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Affected {
    pub(crate) package: Package,
    pub(crate) ranges: Vec<Range>,
    pub(crate) versions: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Package {
    pub(crate) ecosystem: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Range {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    pub(crate) introduced: Option<String>,
    pub(crate) fixed: Option<String>,
    pub(crate) last_affected: Option<String>,
    pub(crate) limit: Option<String>,
}

impl Affected {
    /// Returns the versions at which the ranges begin and end.
    pub(crate) fn borders(&self) -> impl Iterator<Item = &str> {
        let events = self.ranges.iter().filter(|range| range.kind != "GIT").flat_map(|range| &range.events);
        let named = events.flat_map(|event| {
            [&event.introduced, &event.fixed, &event.last_affected, &event.limit].into_iter().flatten()
        });
        named.map(String::as_str).filter(|version| !["0", "*"].contains(version))
    }
}

/// Returns the order of two versions; `None` if one of them is not a valid version.
pub(crate) type Compare<'a> = &'a dyn Fn(&str, &str) -> Option<Ordering>;

/// Returns `true` if this version is affected. This is `IsVulnerable` of the specification.
pub(crate) fn judge(affected: &Affected, version: &str, compare: Compare<'_>) -> bool {
    if affected.versions.iter().any(|listed| listed == version) {
        return true;
    }
    let mut ranges = affected.ranges.iter().filter(|range| range.kind != "GIT");
    if compare(version, version).is_none() {
        // An invalid version has no order, so only a range over every version affects it.
        return ranges.any(is_everything);
    }
    let is_listed = |listed: &String| compare(version, listed) == Some(Ordering::Equal);
    affected.versions.iter().any(is_listed)
        || ranges.any(|range| before_limits(range, version, compare) && within(range, version, compare))
}

/// Adds the pairs of versions that `judge` compares for this version.
pub(crate) fn pairs<'a>(affected: &'a Affected, version: &'a str, pairs: &mut BTreeSet<(&'a str, &'a str)>) {
    pairs.insert((version, version));
    let named: Vec<&str> = affected.borders().collect();
    pairs.extend(affected.versions.iter().map(|listed| (version, listed.as_str())));
    pairs.extend(named.iter().map(|border| (version, *border)));
    pairs.extend(named.iter().flat_map(|one| named.iter().map(|other| (*one, *other))));
}

fn is_everything(range: &Range) -> bool {
    let unlimited = |event: &Event| event.limit.as_deref().is_none_or(|limit| limit == "*");
    let no_end = |event: &Event| event.fixed.is_none() && event.last_affected.is_none();
    range.events.iter().any(|event| event.introduced.as_deref() == Some("0"))
        && range.events.iter().all(|event| unlimited(event) && no_end(event))
}

fn before_limits(range: &Range, version: &str, compare: Compare<'_>) -> bool {
    let limits: Vec<&str> = range.events.iter().filter_map(|event| event.limit.as_deref()).collect();
    limits.is_empty()
        || limits.iter().any(|limit| *limit == "*" || compare(version, limit) == Some(Ordering::Less))
}

/// Applies the events in the order of their versions. Each event begins or ends an affected range.
fn within(range: &Range, version: &str, compare: Compare<'_>) -> bool {
    let at = |event: &Event| {
        let named = [&event.introduced, &event.fixed, &event.last_affected];
        named.into_iter().flatten().next().cloned()
    };
    let mut events: Vec<(String, &Event)> =
        range.events.iter().filter_map(|event| Some((at(event)?, event))).collect();
    // Drops events with an invalid version. The version `0` comes before all others.
    events.retain(|(at, _)| at == "0" || compare(at, at).is_some());
    events.sort_by(|(one, _), (other, _)| match (one.as_str(), other.as_str()) {
        ("0", "0") => Ordering::Equal,
        ("0", _) => Ordering::Less,
        (_, "0") => Ordering::Greater,
        (one, other) => compare(one, other).unwrap_or(Ordering::Equal),
    });
    let mut vulnerable = false;
    for (at, event) in events {
        let stands = if at == "0" { Some(Ordering::Greater) } else { compare(version, &at) };
        let reached = stands.is_some_and(Ordering::is_ge);
        if event.introduced.is_some() && reached {
            vulnerable = true;
        }
        let ended = event.fixed.is_some() && reached;
        let passed = event.last_affected.is_some() && stands == Some(Ordering::Greater);
        if event.introduced.is_none() && (ended || passed) {
            vulnerable = false;
        }
    }
    vulnerable
}
