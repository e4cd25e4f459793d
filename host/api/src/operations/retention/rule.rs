//! What a policy says, and whether a version falls under it. Pure: it knows of no store.

use std::str::FromStr;

use packhouse_runtime::{Folding, NamePatterns};
use packhouse_store::RepositoryId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What a policy says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Rule {
    /// Where it holds.
    pub repositories: Reach,
    /// Which versions it is about: what all that is said holds of.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Which of these go: those of which all that is said holds.
    pub delete: Conditions,
    /// Which of these stay in any case: those of which anything that is said holds.
    pub keep: Keep,
    /// How many one run deletes at most.
    pub max_deletes: u64,
}

/// Where a policy holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reach {
    /// In every hosted repository of the organization, also in later ones.
    All,
    /// In these.
    Only(Vec<RepositoryId>),
}

/// Which versions a policy is about.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Matching {
    /// Patterns of packages, one of which fits; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<NamePatterns>,
    /// Patterns of versions, one of which fits; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Vec<String>>,
    /// Whether a tag names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tagged: Option<bool>,
    /// Whether it is a pre-release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerelease: Option<bool>,
}

/// Which versions go.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Conditions {
    /// Published so many days ago or more; 0: ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_before_days: Option<u32>,
    /// Not fetched for so many days, or since it was published; 0: whenever it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_downloaded_days: Option<u32>,
}

/// Which versions stay.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Keep {
    /// The latest publications of each package, so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
    /// Patterns of versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Vec<String>>,
}

/// A version as a rule judges it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    pub(super) package: &'a str,
    pub(super) version: &'a str,
    /// In ms since 1970; none where nobody knows.
    pub(super) published_at: Option<i64>,
    pub(super) last_downloaded_at: Option<i64>,
    /// Whether it would be known had it been fetched.
    pub(super) counted: bool,
    pub(super) tagged: Option<bool>,
    pub(super) prerelease: Option<bool>,
}

impl Rule {
    /// As it is stored.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Names what is stored.
    pub(super) fn digest(text: &str) -> String {
        hex::encode(Sha256::digest(text.as_bytes()))
    }

    /// Whether it is about a version of a format that folds names so.
    pub(super) fn matches(&self, folding: Folding, judged: &Judged<'_>) -> bool {
        let Matching { packages, versions, tagged, prerelease } = &self.matching;
        // What the format cannot tell is neither.
        let is = |wanted: &Option<bool>, is: Option<bool>| wanted.is_none_or(|wanted| is == Some(wanted));
        packages.as_ref().is_none_or(|patterns| patterns.cover(folding, judged.package))
            && any(versions.as_deref(), judged.version)
            && is(tagged, judged.tagged)
            && is(prerelease, judged.prerelease)
    }

    /// Whether a version stays by its name, whatever else holds of it.
    pub(super) fn keeps(&self, version: &str) -> bool {
        self.keep.versions.as_ref().is_some_and(|patterns| any(Some(patterns), version))
    }

    /// Why a version is to go at this time; nothing where it is not.
    pub(super) fn condemns(&self, judged: &Judged<'_>, now: i64) -> Option<String> {
        let Conditions { published_before_days, not_downloaded_days } = self.delete;
        let mut because = Vec::new();
        if let Some(days) = published_before_days {
            because.push(match judged.published_at {
                _ if days == 0 => "the policy deletes versions of any age".to_owned(),
                Some(at) if older(at, days, now) => format!("published {}", ago(at, now)),
                _ => return None,
            });
        }
        if let Some(days) = not_downloaded_days {
            let last = judged.last_downloaded_at;
            because.push(match (last, judged.published_at) {
                _ if days == 0 => "the policy deletes versions however often they are downloaded".to_owned(),
                (Some(at), _) if older(at, days, now) => format!("last downloaded {}", ago(at, now)),
                (None, Some(at)) if judged.counted && older(at, days, now) => {
                    format!("never downloaded, published {}", ago(at, now))
                }
                _ => return None,
            });
        }
        (!because.is_empty()).then(|| because.join("; "))
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

/// Whether one of the patterns fits; without patterns anything does.
fn any(patterns: Option<&[String]>, text: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, text)))
}

/// Whether a text is as a pattern says, in which `*` stands for any text. Takes as long as both are long, multiplied, at most.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut read) = (0, 0);
    // Behind the last `*`, and up to where it reached.
    let mut again: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at + 1, read));
                at += 1;
            }
            Some(byte) if text.get(read) == Some(byte) => (at, read) = (at + 1, read + 1),
            _ => {
                let Some((behind, reached)) = again else { return false };
                again = Some((behind, reached + 1));
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

    /// As the words say it: what stands between the stars, one behind the other.
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
        fn a_pattern_fits_as_the_model_says(pattern in "[ab*]{0,8}", text in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &text), model(&chars(&pattern), &chars(&text)));
        }
    }

    fn rule(json: serde_json::Value) -> Rule {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn all_conditions_hold_and_what_was_never_fetched_counts_from_its_publication() {
        let judged = |published: i64, fetched: Option<i64>| Judged {
            package: "a",
            version: "1",
            published_at: Some(published * DAY_MS),
            last_downloaded_at: fetched.map(|at| at * DAY_MS),
            counted: true,
            tagged: None,
            prerelease: None,
        };
        let condemned = |published, not_downloaded, judged| {
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
            of(conditions.into()).condemns(&judged, 100 * DAY_MS).is_some()
        };
        assert!(condemned(Some(10), None, judged(90, None)) && !condemned(Some(11), None, judged(90, None)));
        assert!(condemned(None, Some(10), judged(90, None)) && !condemned(None, Some(10), judged(95, None)));
        assert!(condemned(None, Some(10), judged(95, Some(90))));
        assert!(!condemned(Some(10), Some(10), judged(50, Some(99))));
        assert!(condemned(Some(0), Some(0), judged(120, Some(120))), "0 is any age");
        let unknown = Judged { published_at: None, counted: false, ..judged(0, None) };
        assert!(condemned(Some(0), Some(0), unknown) && !condemned(Some(1), None, unknown));
        assert!(
            !condemned(None, Some(1), Judged { published_at: Some(0), ..unknown }),
            "nobody counts its fetches"
        );
        assert!(!condemned(None, None, judged(0, None)));
    }

    #[test]
    fn the_reason_names_an_age_only_where_the_rule_does() {
        let judged = Judged {
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
            rule(json).condemns(&judged, 2 * DAY_MS)
        };
        assert_eq!(reason(0).as_deref(), Some("the policy deletes versions of any age"));
        assert_eq!(reason(1).as_deref(), Some("published 1 day ago"));
        assert_eq!(reason(2), None);
    }

    #[test]
    fn what_a_format_cannot_tell_matches_neither() {
        let wants = |matching: serde_json::Value| {
            rule(
                serde_json::json!({"repositories": ["1"], "match": matching, "delete": {}, "keep": {}, "max_deletes": 1}),
            )
        };
        let judged = Judged {
            package: "a",
            version: "1",
            published_at: None,
            last_downloaded_at: None,
            counted: true,
            tagged: None,
            prerelease: Some(true),
        };
        assert!(!wants(serde_json::json!({"tagged": false})).matches(Folding::None, &judged));
        assert!(!wants(serde_json::json!({"tagged": true})).matches(Folding::None, &judged));
        assert!(
            wants(serde_json::json!({"prerelease": true, "packages": ["b", "a"]}))
                .matches(Folding::None, &judged)
        );
        let spelt = wants(serde_json::json!({"packages": ["A.*"]}));
        let package = Judged { package: "a-b", ..judged };
        assert!(spelt.matches(Folding::Pep503, &package) && !spelt.matches(Folding::None, &package));
        assert!(!wants(serde_json::json!({"versions": []})).matches(Folding::None, &judged));
        assert!(wants(serde_json::json!({})).matches(Folding::None, &judged));
    }

    #[test]
    fn a_rule_is_stored_as_it_was_and_named_by_what_it_says() {
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
