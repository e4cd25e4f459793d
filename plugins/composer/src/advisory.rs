//! Imported advisories in the form of Packagist's API.

use crate::Composer;
use packhouse_sdk::{Advisory, AffectedRange, Place, Timestamp, Versions as _, places};
use serde_json::{Value, json};

/// The version in `introduced` that stands for the start of all versions.
const BEGINNING: &str = "0";

/// The advisory as Composer reads it; `None` if it names no version that Composer can read.
pub(crate) fn to_json(advisory: &Advisory, package: &str) -> Option<Value> {
    let affected = constraint(advisory)?;
    let (id, source) = (&advisory.id, source(&advisory.id));
    let published = Timestamp::from_ms(advisory.published.unwrap_or_default()).to_rfc3339();
    let names = std::iter::once(id).chain(&advisory.aliases);
    let cve = names.into_iter().find(|name| name.starts_with("CVE-"));
    let link = Some(&advisory.url).filter(|url| !url.is_empty());
    Some(json!({
        "advisoryId": id, "packageName": package, "remoteId": id, "title": title(advisory),
        "link": link, "cve": cve, "affectedVersions": affected, "source": source,
        "reportedAt": published, "severity": severity(advisory),
        "sources": [{"name": source, "remoteId": id}],
    }))
}

/// Returns true if an upstream's advisory has the id or an alias of `advisory`.
pub(crate) fn is_same(other: &Value, advisory: &Advisory) -> bool {
    let text = |value: &Value, member: &str| value.get(member).and_then(Value::as_str).map(str::to_owned);
    let own = ["advisoryId", "remoteId", "cve"].into_iter().filter_map(|member| text(other, member));
    let sources = other.get("sources").and_then(Value::as_array).into_iter().flatten();
    let mut ids = own.chain(sources.filter_map(|source| text(source, "remoteId")));
    ids.any(|id| id == advisory.id || advisory.aliases.contains(&id))
}

fn title(advisory: &Advisory) -> &str {
    if advisory.summary.is_empty() { &advisory.id } else { &advisory.summary }
}

fn source(id: &str) -> &'static str {
    if id.starts_with("GHSA-") { "GitHub" } else { "OSV" }
}

/// The severity in Packagist's terms.
fn severity(advisory: &Advisory) -> Option<&str> {
    match advisory.severity.as_str() {
        "" | "unknown" => None,
        "moderate" => Some("medium"),
        known => Some(known),
    }
}

/// Returns the affected versions as a constraint. Listed versions are used only if no range is
/// readable, because readable ranges already cover these versions.
fn constraint(advisory: &Advisory) -> Option<String> {
    let affected = &advisory.affected;
    let ranges = affected.ranges.iter().filter(|range| !range.kind.eq_ignore_ascii_case("GIT"));
    let mut parts: Vec<String> = ranges.flat_map(intervals).collect();
    if parts.is_empty() {
        let known = affected.versions.iter().filter(|version| is_known(version));
        parts.extend(known.map(|version| format!("={version}")));
    }
    (!parts.is_empty()).then(|| parts.join("|"))
}

fn is_known(version: &str) -> bool {
    Composer::version(version).is_some()
}

/// The effect of an event in a range: an interval of affected versions begins or ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RangeEvent {
    Begins,
    /// The interval ends before this version.
    Ends,
    /// The interval includes this version and ends.
    EndsWith,
}

/// The intervals of a range as constraints.
fn intervals(range: &AffectedRange) -> Vec<String> {
    let mut events: Vec<(&str, RangeEvent)> = Vec::new();
    for event in &range.events {
        let stated = [
            (&event.introduced, RangeEvent::Begins),
            (&event.fixed, RangeEvent::Ends),
            (&event.last_affected, RangeEvent::EndsWith),
            (&event.limit, RangeEvent::Ends),
        ];
        let stated = stated.into_iter().filter_map(|(text, kind)| Some((text.as_deref()?, kind)));
        events.extend(stated.filter(|(text, _)| *text == BEGINNING || is_known(text)));
    }
    let texts: Vec<&str> = events.iter().map(|(text, _)| *text).collect();
    let mut sorted: Vec<(Place, (&str, RangeEvent))> =
        places(&texts, Composer::version).into_iter().zip(events).collect();
    sorted.sort_by_key(|(place, (text, _))| if *text == BEGINNING { None } else { *place });
    let (mut found, mut open): (Vec<String>, Option<&str>) = (Vec::new(), None);
    for (_, (text, kind)) in sorted {
        match (kind, open) {
            (RangeEvent::Begins, None) => open = Some(text),
            (RangeEvent::Begins, Some(_)) | (_, None) => {}
            (_, Some(from)) => {
                let sign = if kind == RangeEvent::EndsWith { "<=" } else { "<" };
                let until = format!("{sign}{text}");
                found.push(if from == BEGINNING { until } else { format!(">={from},{until}") });
                open = None;
            }
        }
    }
    found.extend(open.map(|from| if from == BEGINNING { "*".to_owned() } else { format!(">={from}") }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_sdk::AffectedVersions;
    use proptest::prelude::*;

    fn advisory(affected: Value) -> Advisory {
        let affected: AffectedVersions = serde_json::from_value(affected).unwrap();
        Advisory {
            id: "GHSA-1".to_owned(),
            aliases: vec!["CVE-2026-1".to_owned()],
            severity: "moderate".to_owned(),
            affected,
            ..Advisory::default()
        }
    }

    #[test]
    fn ranges_become_constraints() {
        for (events, expected) in [
            (json!([{"introduced": "0"}, {"fixed": "1.2.3"}]), Some("<1.2.3")),
            (
                json!([{"introduced": "2.0.0"}, {"fixed": "2.1.0"}, {"introduced": "0"}, {"last_affected": "1.0.0"}]),
                Some("<=1.0.0|>=2.0.0,<2.1.0"),
            ),
            (json!([{"introduced": "0"}]), Some("*")),
            (json!([{"introduced": "v3.0.0-RC1"}]), Some(">=v3.0.0-RC1")),
            (json!([]), Some("=1.0.0|=1.0.1")),
        ] {
            let ranges = json!([{"type": "ECOSYSTEM", "events": events}]);
            let affected = json!({"ranges": ranges, "versions": ["1.0.0", "1.0.1", "x"]});
            assert_eq!(constraint(&advisory(affected)).as_deref(), expected);
        }
        assert_eq!(constraint(&advisory(json!({"versions": ["not a version"]}))), None);
        let commits = json!({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]});
        assert_eq!(constraint(&advisory(commits)), None);
    }

    #[test]
    fn an_advisory_has_the_members_that_composer_requires() {
        let advisory = advisory(json!({"versions": ["1.0"]}));
        let written = to_json(&advisory, "acme/demo").unwrap();
        assert_eq!(
            written,
            json!({
                "advisoryId": "GHSA-1", "packageName": "acme/demo", "remoteId": "GHSA-1", "title": "GHSA-1",
                "link": null, "cve": "CVE-2026-1", "affectedVersions": "=1.0", "source": "GitHub",
                "reportedAt": "1970-01-01T00:00:00.000Z", "severity": "medium",
                "sources": [{"name": "GitHub", "remoteId": "GHSA-1"}],
            })
        );
        for same in [
            json!({"advisoryId": "GHSA-1"}),
            json!({"cve": "CVE-2026-1"}),
            json!({"advisoryId": "PKSA-1", "sources": [{"name": "GitHub", "remoteId": "GHSA-1"}]}),
        ] {
            assert!(is_same(&same, &advisory), "{same}");
        }
        assert!(!is_same(&json!({"advisoryId": "PKSA-1", "cve": null}), &advisory));
    }

    proptest! {
        #[test]
        fn any_range_is_handled(events in prop::collection::vec("\\PC{0,8}|[0-9.]{1,4}", 0..6)) {
            let events: Vec<Value> = events
                .iter()
                .enumerate()
                .map(|(at, text)| json!({ if at % 2 == 0 { "introduced" } else { "fixed" }: text }))
                .collect();
            let _ = constraint(&advisory(json!({"ranges": [{"type": "SEMVER", "events": events}]})));
        }
    }
}
