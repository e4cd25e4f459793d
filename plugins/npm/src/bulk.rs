//! Advisories as `npm audit` gets them in bulk: those that the operator brought in, beside an upstream's.

use crate::Npm;
use packhouse_sdk::{Advisory, AffectedRange, Failure, Place, Repository, Versions as _, places};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Versions of one package that a question may name.
const VERSIONS: usize = 1_000;

/// What is known of the versions that a question names, by package, in npm's form.
pub(crate) fn known(
    repository: &Repository,
    question: &Map<String, Value>,
) -> Result<BTreeMap<String, Vec<Advisory>>, Failure> {
    let names: Vec<String> = question.keys().cloned().collect();
    let mut known = repository.advisories(&names)?;
    for (name, advisories) in &mut known {
        let asked = question.get(name).and_then(Value::as_array).into_iter().flatten();
        let asked: Vec<&str> = asked.filter_map(Value::as_str).take(VERSIONS).collect();
        advisories.retain(|advisory| !affected(advisory, &asked).is_empty());
    }
    known.retain(|_, advisories| !advisories.is_empty());
    Ok(known)
}

/// Those of these versions that it is about.
pub(crate) fn affected<'a>(advisory: &Advisory, versions: &[&'a str]) -> Vec<&'a str> {
    let named: Vec<&str> = advisory.affected.named().chain(versions.iter().copied()).collect();
    let places: BTreeMap<&str, Place> = named.iter().copied().zip(places(&named, Npm::version)).collect();
    let place = |version: &str| places.get(version).copied().flatten();
    versions.iter().copied().filter(|version| advisory.affected.covers(version, place)).collect()
}

/// Adds what one more upstream says. An advisory that an upstream before told about the package is left out. One upstream may tell several of one address: one for each range
/// of versions.
pub(crate) fn add(told: &mut Map<String, Value>, upstream: Map<String, Value>) {
    for (name, advisories) in upstream {
        let Value::Array(advisories) = advisories else { continue };
        let Value::Array(told) = told.entry(name).or_insert_with(|| json!([])) else { continue };
        let before: BTreeSet<String> = told.iter().flat_map(marks).collect();
        told.extend(advisories.into_iter().filter(|one| !marks(one).any(|mark| before.contains(&mark))));
    }
}

/// What upstreams tell the same advisory by: the address of its description, or its number where it has no
/// address.
pub(crate) fn marks(advisory: &Value) -> impl Iterator<Item = String> {
    let stated = ["url", "id"].into_iter().filter_map(move |member| advisory.get(member));
    stated.filter(|value| !value.is_null() && value.as_str() != Some("")).map(Value::to_string).take(1)
}

/// Adds what is known here to what an upstream says. What the upstream tells itself, by the same name, is not told twice.
pub(crate) fn merge(upstream: &mut Map<String, Value>, known: BTreeMap<String, Vec<Advisory>>) {
    for (name, advisories) in known {
        let told = upstream.entry(name).or_insert_with(|| json!([]));
        let Value::Array(told) = told else { continue };
        for advisory in advisories {
            let is_told = told.iter().any(|other| is_same(other, &advisory));
            if !is_told {
                told.push(written(&advisory));
            }
        }
    }
}

/// Whether an upstream's advisory names this one in the address of its description.
pub(crate) fn is_same(other: &Value, advisory: &Advisory) -> bool {
    let url = other.get("url").and_then(Value::as_str).unwrap_or_default();
    let ends = |id: &String| {
        !id.is_empty() && url.strip_suffix(id.as_str()).is_some_and(|before| before.ends_with('/'))
    };
    ends(&advisory.id) || advisory.aliases.iter().any(ends)
}

fn written(advisory: &Advisory) -> Value {
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

/// In npm's words. It has none for what nobody says, and fails over one that it does not know.
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

/// A number for an identifier, always the same: clients tell advisories apart by numbers. FNV-1a, of which 31 bits are kept.
pub(crate) fn number(id: &str) -> u32 {
    let hash =
        id.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash >> 1
}

/// The affected versions as a range of node-semver, which judges it as we do.
pub(crate) fn range(advisory: &Advisory) -> String {
    let ranges = advisory.affected.ranges.iter().filter(|range| !range.kind.eq_ignore_ascii_case("GIT"));
    let mut parts: Vec<String> = ranges.flat_map(comparators).collect();
    let listed = advisory.affected.versions.iter().filter(|version| Npm::version(version).is_some());
    // What ranges cover need not be listed, and lists of thousands are nothing that a client should compare.
    if parts.is_empty() {
        parts.extend(listed.map(|version| format!("={version}")));
    }
    parts.join(" || ")
}

/// Each stretch between a beginning and an end.
fn comparators(range: &AffectedRange) -> Vec<String> {
    let version = |text: &Option<String>| {
        text.as_deref().filter(|text| *text == "0" || Npm::version(text).is_some()).map(str::to_owned)
    };
    let mut events: Vec<(String, char)> = Vec::new();
    for event in &range.events {
        let said =
            [(&event.introduced, '['), (&event.fixed, ')'), (&event.last_affected, ']'), (&event.limit, ')')];
        events.extend(said.into_iter().filter_map(|(text, kind)| Some((version(text)?, kind))));
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
    fn what_another_upstream_told_is_not_told_twice() {
        let upstream = |all: Value| Map::from_iter([("lib".to_owned(), all)]);
        let mut told = Map::new();
        let ranges =
            json!([{"id": 1, "url": "https://a.example/1"}, {"id": 2, "url": "https://a.example/1"}]);
        add(&mut told, upstream(ranges.clone()));
        assert_eq!(told["lib"], ranges, "each range of one advisory is told");
        let others = json!([
            {"id": 1, "url": "https://b.example/1"}, {"id": 9, "url": "https://a.example/1"}, {"id": 3, "url": ""}, {"url": ""}
        ]);
        add(&mut told, upstream(others));
        assert_eq!(told["lib"].as_array().unwrap().len(), 5, "{told:?}");
        assert_eq!(told["lib"][2]["url"], "https://b.example/1", "numbers are each upstream's own");
        add(&mut told, upstream(json!([{"id": 3}, {"id": 4}])));
        add(&mut told, upstream(json!("odd")));
        assert_eq!((&told["lib"][3], &told["lib"][5]), (&json!({"id": 3, "url": ""}), &json!({"id": 4})));
    }

    #[test]
    fn what_an_upstream_says_itself_is_not_said_twice() {
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
