//! Bulk advisories for `npm audit`, merged from the operator's imported advisories and the
//! responses of upstreams.

use crate::Npm;
use packhouse_sdk::{Advisory, AffectedRange, Failure, Place, Repository, Versions as _, places};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of versions of one package that are checked. Further versions in a request are
/// ignored.
const VERSIONS: usize = 1_000;

/// Returns the local advisories that affect the versions in a request, by package.
pub(crate) fn known(
    repository: &Repository,
    question: &Map<String, Value>,
) -> Result<BTreeMap<String, Vec<Advisory>>, Failure> {
    let names: Vec<String> = question.keys().cloned().collect();
    let mut known = repository.advisories(&names)?;
    for (name, advisories) in &mut known {
        let requested = question.get(name).and_then(Value::as_array).into_iter().flatten();
        let requested: Vec<&str> = requested.filter_map(Value::as_str).take(VERSIONS).collect();
        advisories.retain(|advisory| !affected(advisory, &requested).is_empty());
    }
    known.retain(|_, advisories| !advisories.is_empty());
    Ok(known)
}

/// Returns the versions in the list that an advisory affects.
pub(crate) fn affected<'a>(advisory: &Advisory, versions: &[&'a str]) -> Vec<&'a str> {
    let named: Vec<&str> = advisory.affected.named().chain(versions.iter().copied()).collect();
    let places: BTreeMap<&str, Place> = named.iter().copied().zip(places(&named, Npm::version)).collect();
    let place = |version: &str| places.get(version).copied().flatten();
    versions.iter().copied().filter(|version| advisory.affected.covers(version, place)).collect()
}

/// Adds the advisories of another upstream. Leaves out an advisory that an earlier upstream lists
/// for the same package. One upstream may list several advisories with the same address, each for a
/// different range of versions. Adds all of these.
pub(crate) fn add(merged: &mut Map<String, Value>, upstream: Map<String, Value>) {
    for (name, advisories) in upstream {
        let Value::Array(advisories) = advisories else { continue };
        let Value::Array(merged) = merged.entry(name).or_insert_with(|| json!([])) else { continue };
        let before: BTreeSet<String> = merged.iter().flat_map(identity).collect();
        merged.extend(advisories.into_iter().filter(|one| !identity(one).any(|id| before.contains(&id))));
    }
}

/// Returns the identity of an advisory across upstreams: the address of its description, or its
/// number if it has no address.
pub(crate) fn identity(advisory: &Value) -> impl Iterator<Item = String> {
    let stated = ["url", "id"].into_iter().filter_map(move |member| advisory.get(member));
    stated.filter(|value| !value.is_null() && value.as_str() != Some("")).map(Value::to_string).take(1)
}

/// Adds the local advisories to the upstreams' advisories. Leaves out an advisory that an upstream
/// already lists.
pub(crate) fn merge(upstream: &mut Map<String, Value>, known: BTreeMap<String, Vec<Advisory>>) {
    for (name, advisories) in known {
        let listed = upstream.entry(name).or_insert_with(|| json!([]));
        let Value::Array(listed) = listed else { continue };
        for advisory in advisories {
            let is_listed = listed.iter().any(|other| is_same(other, &advisory));
            if !is_listed {
                listed.push(npm_json(&advisory));
            }
        }
    }
}

/// Returns true if an upstream's advisory is the same as a local one. It is the same if its address
/// ends with a slash and the id or an alias of the local advisory.
pub(crate) fn is_same(other: &Value, advisory: &Advisory) -> bool {
    let url = other.get("url").and_then(Value::as_str).unwrap_or_default();
    let ends = |id: &String| {
        !id.is_empty() && url.strip_suffix(id.as_str()).is_some_and(|before| before.ends_with('/'))
    };
    ends(&advisory.id) || advisory.aliases.iter().any(ends)
}

/// Converts a local advisory to npm's format.
fn npm_json(advisory: &Advisory) -> Value {
    let cvss = advisory.cvss.as_ref().map(|cvss| {
        let vector = Some(&cvss.vector).filter(|_| cvss.score > 0.0);
        json!({"score": cvss.score, "vectorString": vector})
    });
    json!({
        "id": number(&advisory.id), "url": advisory.url, "title": title(advisory), "severity": severity(advisory),
        "vulnerable_versions": range(advisory), "cwe": advisory.cwes,
        "cvss": cvss.unwrap_or_else(|| json!({"score": 0, "vectorString": null})),
    })
}

/// Returns npm's name of the severity. An unknown severity becomes `info`: npm has no name for it,
/// and fails on a name that it does not know.
pub(crate) fn severity(advisory: &Advisory) -> &str {
    match advisory.severity.as_str() {
        "" | "unknown" => "info",
        known => known,
    }
}

pub(crate) fn title(advisory: &Advisory) -> String {
    match advisory.summary.as_str() {
        "" => advisory.id.clone(),
        summary => format!("{summary} ({})", advisory.id),
    }
}

/// Returns a stable number for an identifier: 31 bits of its FNV-1a hash. Clients distinguish
/// advisories by their numbers.
pub(crate) fn number(id: &str) -> u32 {
    let hash =
        id.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash >> 1
}

/// Returns the affected versions as a node-semver range. The range selects the same versions as the
/// host's own comparison.
pub(crate) fn range(advisory: &Advisory) -> String {
    let ranges = advisory.affected.ranges.iter().filter(|range| !range.kind.eq_ignore_ascii_case("GIT"));
    let mut parts: Vec<String> = ranges.flat_map(comparators).collect();
    let listed = advisory.affected.versions.iter().filter(|version| Npm::version(version).is_some());
    // The range lists single versions only if the advisory has no ranges, so that clients need not
    // compare thousands of versions.
    if parts.is_empty() {
        parts.extend(listed.map(|version| format!("={version}")));
    }
    parts.join(" || ")
}

/// Returns the comparators of a range, such as `>=1.0.0 <1.2.3`: one text for each interval of
/// affected versions.
fn comparators(range: &AffectedRange) -> Vec<String> {
    let version = |text: &Option<String>| {
        text.as_deref().filter(|text| *text == "0" || Npm::version(text).is_some()).map(str::to_owned)
    };
    let mut events: Vec<(String, char)> = Vec::new();
    for event in &range.events {
        let bounds =
            [(&event.introduced, '['), (&event.fixed, ')'), (&event.last_affected, ']'), (&event.limit, ')')];
        events.extend(bounds.into_iter().filter_map(|(text, kind)| Some((version(text)?, kind))));
    }
    let texts: Vec<&str> = events.iter().map(|(text, _)| text.as_str()).collect();
    let order = places(&texts, Npm::version);
    let mut sorted: Vec<(Place, &(String, char))> = order.into_iter().zip(&events).collect();
    sorted.sort_by_key(|(place, _)| *place);
    let (mut found, mut open): (Vec<String>, Option<&str>) = (Vec::new(), None);
    for (_, (text, kind)) in sorted {
        match (kind, open) {
            ('[', None) => open = Some(text),
            ('[', Some(_)) | (_, None) => {}
            (kind, Some(from)) => {
                let until = if *kind == ']' { format!("<={text}") } else { format!("<{text}") };
                found.push(if from == "0" { until } else { format!(">={from} {until}") });
                open = None;
            }
        }
    }
    found.extend(open.map(|from| if from == "0" { "*".to_owned() } else { format!(">={from}") }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advisory(affected: &Value) -> Advisory {
        let affected = serde_json::from_value(affected.clone()).unwrap();
        Advisory { id: "GHSA-1".to_owned(), affected, ..Advisory::default() }
    }

    #[test]
    fn ranges_are_written_as_npm_reads_them() {
        for (events, expected) in [
            (json!([{"introduced": "0"}, {"fixed": "1.2.3"}]), "<1.2.3"),
            (
                json!([{"introduced": "2.0.0"}, {"fixed": "2.1.0"}, {"introduced": "0"}, {"last_affected": "1.0.0"}]),
                "<=1.0.0 || >=2.0.0 <2.1.0",
            ),
            (json!([{"introduced": "0"}]), "*"),
            (json!([{"introduced": "3.0.0-rc.1"}]), ">=3.0.0-rc.1"),
            (json!([]), "=1.0.0 || =1.0.1"),
        ] {
            let affected =
                json!({"ranges": [{"type": "SEMVER", "events": events}], "versions": ["1.0.0", "1.0.1"]});
            assert_eq!(range(&advisory(&affected)), expected);
        }
    }

    #[test]
    fn an_advisory_of_several_upstreams_is_listed_once() {
        let upstream = |all: Value| Map::from_iter([("lib".to_owned(), all)]);
        let mut merged = Map::new();
        let ranges =
            json!([{"id": 1, "url": "https://a.example/1"}, {"id": 2, "url": "https://a.example/1"}]);
        add(&mut merged, upstream(ranges.clone()));
        assert_eq!(merged["lib"], ranges, "each range of one advisory is listed");
        let others = json!([
            {"id": 1, "url": "https://b.example/1"}, {"id": 9, "url": "https://a.example/1"}, {"id": 3, "url": ""}, {"url": ""}
        ]);
        add(&mut merged, upstream(others));
        assert_eq!(merged["lib"].as_array().unwrap().len(), 5, "{merged:?}");
        assert_eq!(merged["lib"][2]["url"], "https://b.example/1", "two upstreams may use one number");
        add(&mut merged, upstream(json!([{"id": 3}, {"id": 4}])));
        add(&mut merged, upstream(json!("odd")));
        assert_eq!((&merged["lib"][3], &merged["lib"][5]), (&json!({"id": 3, "url": ""}), &json!({"id": 4})));
    }

    #[test]
    fn a_local_advisory_that_an_upstream_has_is_listed_once() {
        let known = |id: &str| {
            BTreeMap::from([("lib".to_owned(), vec![Advisory { id: id.to_owned(), ..Advisory::default() }])])
        };
        let mut upstream = Map::new();
        upstream.insert("lib".to_owned(), json!([{"id": 7, "url": "https://a.example/GHSA-1"}]));
        merge(&mut upstream, known("GHSA-1"));
        assert_eq!(upstream["lib"].as_array().unwrap().len(), 1);
        merge(&mut upstream, known("GHSA-2"));
        assert_eq!(upstream["lib"][1]["title"], "GHSA-2");
        assert_eq!(upstream["lib"][1]["id"], number("GHSA-2"));
    }
}
