//! Rule of a retention policy, and its evaluation for one version. Pure: it does not access the
//! store.

use std::str::FromStr;

use packhouse_runtime::{Folding, NamePatterns};
use packhouse_store::RepositoryId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Rule of a retention policy.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Rule {
    /// Repositories to which it applies.
    pub repositories: Reach,
    /// Versions to which it applies; all given conditions must match.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Versions to delete; all given conditions must hold.
    pub delete: Conditions,
    /// Versions to keep in any case; one given condition is enough.
    pub keep: Keep,
    /// Maximum number of versions that one run deletes.
    pub max_deletes: u64,
}

/// Repositories to which a policy applies.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reach {
    /// All present and future hosted repositories of the organization.
    All,
    Only(Vec<RepositoryId>),
}

/// Versions to which a policy applies.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Matching {
    /// Patterns of package names, one of which must match; `None` matches all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<NamePatterns>,
    /// Patterns of versions, one of which must match; `None` matches all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Vec<String>>,
    /// True if the version has a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tagged: Option<bool>,
    /// True if the version is a pre-release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerelease: Option<bool>,
}

/// Conditions under which a version is deleted.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Conditions {
    /// Published at least so many days ago; 0 for any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_before_days: Option<u32>,
    /// Not downloaded for so many days, or never downloaded and published so many days ago; 0 for
    /// any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_downloaded_days: Option<u32>,
}

/// Versions that are kept in any case.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Keep {
    /// Number of the newest versions to keep of each package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
    /// Patterns of versions to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Vec<String>>,
}

/// Version as the input of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleInput<'a> {
    pub(super) package: &'a str,
    pub(super) version: &'a str,
    /// Time in ms since 1970, if known.
    pub(super) published_at: Option<i64>,
    pub(super) last_downloaded_at: Option<i64>,
    /// True if its downloads are counted.
    pub(super) counted: bool,
    pub(super) tagged: Option<bool>,
    pub(super) prerelease: Option<bool>,
}

impl Rule {
    /// JSON text of the stored rule.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Digest of the stored form.
    pub(super) fn digest(text: &str) -> String {
        hex::encode(Sha256::digest(text.as_bytes()))
    }

    /// Returns whether the rule applies to a version. `folding` is how the format folds names.
    pub(super) fn matches(&self, folding: Folding, input: &RuleInput<'_>) -> bool {
        let Matching { packages, versions, tagged, prerelease } = &self.matching;
        // A fact that the format does not know matches neither value.
        let is =
            |expected: &Option<bool>, is: Option<bool>| expected.is_none_or(|expected| is == Some(expected));
        packages.as_ref().is_none_or(|patterns| patterns.cover(folding, input.package))
            && any(versions.as_deref(), input.version)
            && is(tagged, input.tagged)
            && is(prerelease, input.prerelease)
    }

    /// Returns whether the version's name keeps it in any case.
    pub(super) fn always_keeps(&self, version: &str) -> bool {
        self.keep.versions.as_ref().is_some_and(|patterns| any(Some(patterns), version))
    }

    /// Returns why a version is to be deleted at `now`; `None` if it is not.
    pub(super) fn deletion_reason(&self, input: &RuleInput<'_>, now: i64) -> Option<String> {
        let Conditions { published_before_days, not_downloaded_days } = self.delete;
        let mut reasons = Vec::new();
        if let Some(days) = published_before_days {
            reasons.push(match input.published_at {
                _ if days == 0 => "the policy deletes versions of any age".to_owned(),
                Some(at) if older(at, days, now) => format!("published {}", ago(at, now)),
                _ => return None,
            });
        }
        if let Some(days) = not_downloaded_days {
            let last = input.last_downloaded_at;
            reasons.push(match (last, input.published_at) {
                _ if days == 0 => "the policy deletes versions even if they are downloaded".to_owned(),
                (Some(at), _) if older(at, days, now) => format!("last downloaded {}", ago(at, now)),
                (None, Some(at)) if input.counted && older(at, days, now) => {
                    format!("never downloaded, published {}", ago(at, now))
                }
                _ => return None,
            });
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

fn older(at: i64, days: u32, now: i64) -> bool {
    at <= now.saturating_sub(i64::from(days).saturating_mul(DAY_MS))
}

fn ago(at: i64, now: i64) -> String {
    match now.saturating_sub(at).max(0) / DAY_MS {
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    }
}

/// Returns whether one of the patterns matches; without patterns, anything matches.
fn any(patterns: Option<&[String]>, text: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, text)))
}

/// Returns whether a pattern matches a text; `*` matches any text. The time is at most proportional
/// to the product of both lengths.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut read) = (0, 0);
    // Position after the last `*`, and the end of the text that it matches so far.
    let mut backtrack: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                backtrack = Some((at + 1, read));
                at += 1;
            }
            Some(byte) if text.get(read) == Some(byte) => (at, read) = (at + 1, read + 1),
            _ => {
                let Some((behind, reached)) = backtrack else { return false };
                backtrack = Some((behind, reached + 1));
                (at, read) = (behind, reached + 1);
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

impl Serialize for Reach {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Reach::All => "*".serialize(serializer),
            Reach::Only(ids) => serializer.collect_seq(ids.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for Reach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Reach, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            All(String),
            Only(Vec<String>),
        }
        let wrong = || serde::de::Error::custom("a list of ids, or \"*\"");
        match Form::deserialize(deserializer)? {
            Form::All(text) if text == "*" => Ok(Reach::All),
            Form::All(_) => Err(wrong()),
            Form::Only(ids) => {
                let ids: Result<Vec<_>, _> = ids.iter().map(|id| RepositoryId::from_str(id)).collect();
                ids.map(Reach::Only).map_err(|_| wrong())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fit) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "a", true),
            ("*-SNAPSHOT", "1.0-SNAPSHOT", true),
            ("*-SNAPSHOT", "1.0-SNAPSHOT-1", false),
            ("@acme/*", "@acme/lib", true),
            ("a*b*c", "axxbxbxc", true),
            ("a*b*c", "axxbxbx", false),
            ("a?", "ab", false),
            ("ä*", "äö", true),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    /// Reference implementation that uses recursion.
    fn model(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=text.len()).any(|skipped| model(rest, &text[skipped..])),
            (Some((one, pattern)), Some((other, text))) => one == other && model(pattern, text),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_matches_like_the_model(pattern in "[ab*]{0,8}", text in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &text), model(&chars(&pattern), &chars(&text)));
        }
    }

    fn rule(json: serde_json::Value) -> Rule {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn all_conditions_must_hold_and_a_version_never_downloaded_counts_from_its_publication() {
        let input = |published: i64, fetched: Option<i64>| RuleInput {
            package: "a",
            version: "1",
            published_at: Some(published * DAY_MS),
            last_downloaded_at: fetched.map(|at| at * DAY_MS),
            counted: true,
            tagged: None,
            prerelease: None,
        };
        let candidate = |published, not_downloaded, input| {
            let of = |conditions: serde_json::Value| {
                rule(
                    serde_json::json!({"repositories": "*", "match": {}, "delete": conditions, "keep": {}, "max_deletes": 1}),
                )
            };
            let mut conditions = serde_json::Map::new();
            for (name, days) in
                [("published_before_days", published), ("not_downloaded_days", not_downloaded)]
            {
                if let Some(days) = days {
                    conditions.insert(name.to_owned(), serde_json::json!(days));
                }
            }
            of(conditions.into()).deletion_reason(&input, 100 * DAY_MS).is_some()
        };
        assert!(candidate(Some(10), None, input(90, None)) && !candidate(Some(11), None, input(90, None)));
        assert!(candidate(None, Some(10), input(90, None)) && !candidate(None, Some(10), input(95, None)));
        assert!(candidate(None, Some(10), input(95, Some(90))));
        assert!(!candidate(Some(10), Some(10), input(50, Some(99))));
        assert!(candidate(Some(0), Some(0), input(120, Some(120))), "0 is any age");
        let unknown = RuleInput { published_at: None, counted: false, ..input(0, None) };
        assert!(candidate(Some(0), Some(0), unknown) && !candidate(Some(1), None, unknown));
        assert!(
            !candidate(None, Some(1), RuleInput { published_at: Some(0), ..unknown }),
            "its downloads are not counted"
        );
        assert!(!candidate(None, None, input(0, None)));
    }

    #[test]
    fn the_reason_names_an_age_only_where_the_rule_does() {
        let input = RuleInput {
            package: "a",
            version: "1",
            published_at: Some(DAY_MS),
            last_downloaded_at: None,
            counted: true,
            tagged: None,
            prerelease: None,
        };
        let reason = |days: u32| {
            let delete = serde_json::json!({"published_before_days": days});
            let json = serde_json::json!({"repositories": "*", "match": {}, "delete": delete, "keep": {}, "max_deletes": 1});
            rule(json).deletion_reason(&input, 2 * DAY_MS)
        };
        assert_eq!(reason(0).as_deref(), Some("the policy deletes versions of any age"));
        assert_eq!(reason(1).as_deref(), Some("published 1 day ago"));
        assert_eq!(reason(2), None);
    }

    #[test]
    fn a_fact_that_a_format_does_not_know_matches_neither_value() {
        let wants = |matching: serde_json::Value| {
            rule(
                serde_json::json!({"repositories": ["1"], "match": matching, "delete": {}, "keep": {}, "max_deletes": 1}),
            )
        };
        let input = RuleInput {
            package: "a",
            version: "1",
            published_at: None,
            last_downloaded_at: None,
            counted: true,
            tagged: None,
            prerelease: Some(true),
        };
        assert!(!wants(serde_json::json!({"tagged": false})).matches(Folding::None, &input));
        assert!(!wants(serde_json::json!({"tagged": true})).matches(Folding::None, &input));
        assert!(
            wants(serde_json::json!({"prerelease": true, "packages": ["b", "a"]}))
                .matches(Folding::None, &input)
        );
        let spelt = wants(serde_json::json!({"packages": ["A.*"]}));
        let package = RuleInput { package: "a-b", ..input };
        assert!(spelt.matches(Folding::Pep503, &package) && !spelt.matches(Folding::None, &package));
        assert!(!wants(serde_json::json!({"versions": []})).matches(Folding::None, &input));
        assert!(wants(serde_json::json!({})).matches(Folding::None, &input));
    }

    #[test]
    fn a_rule_is_stored_unchanged_and_its_digest_depends_on_its_content() {
        let one = rule(
            serde_json::json!({"repositories": ["7"], "match": {"tagged": false}, "delete": {"published_before_days": 3},
            "keep": {"newest": 2}, "max_deletes": 5}),
        );
        let text = one.text();
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), one);
        let other = Rule { max_deletes: 6, ..one.clone() };
        assert_ne!(Rule::digest(&text), Rule::digest(&other.text()));
        assert!(serde_json::from_str::<Reach>("\"all\"").is_err());
    }
}
