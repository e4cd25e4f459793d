//! Settings of a repository: those that the host knows for every format, and those that a format's plugin declares.
//! What is stored is what was set; what is shown and handed to a plugin has every default filled in.

use packhouse_names::Folding;
use packhouse_runtime::{Description, RepositoryView, SettingKind};
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value, json};
use url::Url;

/// Patterns of packages' names.
const CLAIMED_NAMES: &str = "claimed_names";
const PATTERNS: [&str; 2] = [CLAIMED_NAMES, "min_release_age_except"];

/// What a setting may be.
enum Shape<'a> {
    Switch,
    Seconds,
    /// A whole number of bytes, or null for no bound.
    Bytes,
    /// A text, or null for none.
    Text,
    /// The address of a server, or null for none. Settings are shown and stored as they are: it may not hold a credential.
    Address,
    Choice(Vec<&'a str>),
    List,
}

/// `public` stands in a column of its own and is put in by [`effective`].
pub const PUBLIC: &str = "public";
/// Where a plugin finds a proxy's address; no setting of the API's, where it is a field of its own.
pub const UPSTREAM: &str = "upstream";
/// Where a plugin finds the largest file that it may take, in bytes; the operator's to set, for a format as a whole.
pub const MAX_FILE_BYTES: &str = "max_file_bytes";

/// How many bytes of files a repository may show.
const QUOTA_BYTES: &str = "quota_bytes";
/// For how many days what people delete can be brought back; 0: not at all.
const TRASH_DAYS: &str = "trash_days";
const DEFAULT_TRASH_DAYS: u64 = 7;

/// For how many seconds an upstream may send nothing, or null for as long as the server's
/// configuration says.
const UPSTREAM_TIMEOUT: &str = "upstream_timeout_s";

/// By which way a proxy's upstream is reached, and who may vouch for it.
pub const WAYS: [&str; 2] = ["egress_proxy", "ca_pem"];

/// The host's own, with their defaults, as the API's description lists them.
fn own() -> Vec<(&'static str, Shape<'static>, Value)> {
    vec![
        (PUBLIC, Shape::Switch, json!(false)),
        ("redeploy", Shape::Choice(vec!["deny", "identical"]), json!("deny")),
        ("republish_deleted", Shape::Switch, json!(false)),
        ("metadata_ttl_s", Shape::Seconds, json!(600)),
        ("negative_ttl_s", Shape::Seconds, json!(60)),
        ("stale_on_error", Shape::Switch, json!(true)),
        ("min_release_age_s", Shape::Seconds, json!(0)),
        ("min_release_age_except", Shape::List, json!([])),
        ("keep_withdrawn", Shape::Switch, json!(false)),
        ("keep_untagged", Shape::Switch, json!(true)),
        (CLAIMED_NAMES, Shape::List, json!([])),
        ("offline", Shape::Switch, json!(false)),
        (UPSTREAM_TIMEOUT, Shape::Seconds, Value::Null),
        ("cache_max_bytes", Shape::Bytes, Value::Null),
        (QUOTA_BYTES, Shape::Bytes, Value::Null),
        (TRASH_DAYS, Shape::Seconds, json!(DEFAULT_TRASH_DAYS)),
        ("egress_proxy", Shape::Address, Value::Null),
        ("ca_pem", Shape::Text, Value::Null),
    ]
}

fn declared(description: &Description) -> impl Iterator<Item = (&str, Shape<'_>, Value)> {
    description.settings.iter().map(|(name, setting)| {
        let shape = match setting.kind {
            SettingKind::Boolean => Shape::Switch,
            SettingKind::Integer => Shape::Seconds,
            SettingKind::Text => Shape::Text,
            SettingKind::Choice => Shape::Choice(setting.choices.iter().map(String::as_str).collect()),
            SettingKind::List => Shape::List,
        };
        (name.as_str(), shape, setting.default.clone())
    })
}

/// How a form asks for a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Form {
    /// Yes or no.
    Switch,
    /// A whole number, or nothing.
    Number,
    /// A text, or nothing.
    Text,
    /// A text of several lines, or nothing.
    Lines,
    /// One of these.
    Choice(Vec<String>),
    /// Texts, one to a line.
    List,
}

/// A setting that a form may ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wanted {
    /// How it is asked for.
    pub shape: Form,
    /// One line for people; may be empty.
    pub summary: String,
}

/// Every setting by its name: the host's own, then those that the format's plugin declares.
pub fn wanted(description: Option<&Description>) -> Vec<(String, Wanted)> {
    let form = |shape: Shape<'_>| match shape {
        Shape::Switch => Form::Switch,
        Shape::Seconds | Shape::Bytes => Form::Number,
        Shape::Text => Form::Lines,
        Shape::Address => Form::Text,
        Shape::Choice(choices) => Form::Choice(choices.into_iter().map(str::to_owned).collect()),
        Shape::List => Form::List,
    };
    let own = own()
        .into_iter()
        .map(|(name, shape, _)| (name.to_owned(), Wanted { shape: form(shape), summary: String::new() }));
    let declared = description.into_iter().flat_map(|one| {
        declared(one).map(move |(name, shape, _)| {
            let summary = one.settings.get(name).map(|setting| setting.summary.clone()).unwrap_or_default();
            (name.to_owned(), (shape, summary))
        })
    });
    let declared = declared.map(|(name, (shape, summary))| (name, Wanted { shape: form(shape), summary }));
    own.chain(declared).collect()
}

/// Checks what a caller wants to set: an object of known names with values of their shapes; null takes a setting back
/// to its default. The error is a sentence for the caller.
pub fn check(wanted: &Value, description: Option<&Description>) -> Result<Map<String, Value>, String> {
    let Value::Object(wanted) = wanted else { return Err("`settings` is an object.".to_owned()) };
    for (name, value) in wanted {
        let own = own();
        let known =
            own.iter().find(|known| known.0 == name).map(|known| fits(&known.1, value)).or_else(|| {
                description
                    .and_then(|one| declared(one).find(|known| known.0 == name))
                    .map(|known| fits(&known.1, value))
            });
        match known {
            None => return Err(format!("There is no setting `{name}`.")),
            Some(Err(wants)) if !value.is_null() => {
                return Err(format!("The setting `{name}` wants {wants}."));
            }
            Some(_) => {}
        }
    }
    Ok(wanted.clone())
}

fn fits(shape: &Shape<'_>, value: &Value) -> Result<(), String> {
    let (right, wants) = match shape {
        Shape::Switch => (value.is_boolean(), "true or false".to_owned()),
        Shape::Seconds | Shape::Bytes => (value.is_u64(), "a whole number, not negative".to_owned()),
        Shape::Text => (value.is_string(), "a text".to_owned()),
        Shape::Address => (
            value.as_str().and_then(|text| Url::parse(text).ok()).is_some_and(|url| is_plain(&url)),
            "the address of a server, without a credential".to_owned(),
        ),
        Shape::Choice(choices) => (
            value.as_str().is_some_and(|text| choices.contains(&text)),
            format!("one of: {}", choices.join(", ")),
        ),
        Shape::List => (
            value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            "a list of texts".to_owned(),
        ),
    };
    if right { Ok(()) } else { Err(wants) }
}

fn is_plain(url: &Url) -> bool {
    url.has_host() && url.username().is_empty() && url.password().is_none()
}

/// Lays `wanted` over what is stored; null takes away.
pub fn merge(stored: &str, wanted: Map<String, Value>) -> Map<String, Value> {
    let mut merged: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    for (name, value) in wanted {
        match value {
            Value::Null => merged.remove(&name),
            value => merged.insert(name, value),
        };
    }
    merged
}

/// Every setting with what is in force: stored, or else its default.
pub fn effective(stored: &str, public: bool, description: Option<&Description>) -> Map<String, Value> {
    let stored: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    let own = own().into_iter().map(|(name, _, default)| (name.to_owned(), default));
    let declared =
        description.into_iter().flat_map(declared).map(|(name, _, default)| (name.to_owned(), default));
    let mut all: Map<String, Value> = own.chain(declared).collect();
    all.extend(stored);
    all.insert(PUBLIC.to_owned(), Value::Bool(public));
    all
}

/// For how many days what people delete in a repository can be brought back; of what is stored.
pub fn trash_days(stored: &str) -> u64 {
    let stored: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    stored.get(TRASH_DAYS).and_then(Value::as_u64).unwrap_or(DEFAULT_TRASH_DAYS)
}

/// The names that a repository claims, as patterns that somebody wrote; of what is stored.
pub fn claimed_names(stored: &str) -> Vec<String> {
    let stored: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    let patterns = stored.get(CLAIMED_NAMES).and_then(Value::as_array).into_iter().flatten();
    patterns.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Spells the patterns of names among settings as a format spells names.
pub fn fold_patterns(settings: &mut Map<String, Value>, folding: Folding) {
    for name in PATTERNS {
        let patterns = settings.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for pattern in patterns {
            if let Value::String(text) = pattern {
                *text = folding.fold(text).into_owned();
            }
        }
    }
}

/// The repository as its plugin sees it: every setting of the format's has a value, a proxy's `upstream` is its address, and
/// `max_file_bytes` is what the operator allows, or else the plugin. Patterns of names are spelt as the format spells names.
pub fn view(row: &RepositoryRow, description: &Description) -> RepositoryView {
    let mut settings = effective(&row.settings, row.public, Some(description));
    settings.extend(row.upstream.clone().map(|address| (UPSTREAM.to_owned(), Value::String(address))));
    settings.extend(description.limits.max_file_bytes.map(|bytes| (MAX_FILE_BYTES.to_owned(), bytes.into())));
    fold_patterns(&mut settings, description.name_folding);
    let settings = Value::Object(settings);
    RepositoryView {
        id: row.id,
        revision: row.revision,
        name: row.name.as_str().into(),
        kind: row.kind.as_str().into(),
        settings: settings.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_settings_of_their_shape_are_taken() {
        for right in [
            json!({}),
            json!({"public": true, "redeploy": "identical", "metadata_ttl_s": 5, "claimed_names": ["a"]}),
            json!({"cache_max_bytes": null, "offline": null, "egress_proxy": null}),
            json!({"egress_proxy": "http://proxy.example:3128"}),
        ] {
            assert!(check(&right, None).is_ok(), "{right}");
        }
        for wrong in [
            json!([]),
            json!({"publik": true}),
            json!({"public": "yes"}),
            json!({"redeploy": "overwrite"}),
            json!({"metadata_ttl_s": -1}),
            json!({"metadata_ttl_s": 1.5}),
            json!({"claimed_names": [1]}),
            json!({"egress_proxy": "proxy.example"}),
            json!({"egress_proxy": "http://robot:secret@proxy.example:3128"}),
            json!({"egress_proxy": "http://robot@proxy.example:3128"}),
        ] {
            assert!(check(&wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_in_force_has_every_default() {
        let all = effective(r#"{"offline": true}"#, true, None);
        assert_eq!(all["offline"], true);
        assert_eq!(all["public"], true);
        assert_eq!(all["redeploy"], "deny");
        assert_eq!(all.len(), own().len());
    }

    #[test]
    fn patterns_are_spelt_as_names_are() {
        let stored = r#"{"claimed_names": ["Our.*", "x"], "min_release_age_except": ["Demo_App"]}"#;
        assert_eq!(claimed_names(stored), ["Our.*", "x"]);
        assert!(claimed_names("{}").is_empty());
        let mut all = effective(stored, false, None);
        fold_patterns(&mut all, Folding::Pep503);
        assert_eq!(all["claimed_names"], json!(["our-*", "x"]));
        assert_eq!(all["min_release_age_except"], json!(["demo-app"]));
    }

    #[test]
    fn null_takes_a_setting_back() {
        let wanted = json!({"offline": null, "redeploy": "identical"});
        let merged =
            merge(r#"{"offline": true, "keep_untagged": false}"#, wanted.as_object().unwrap().clone());
        assert_eq!(Value::Object(merged), json!({"keep_untagged": false, "redeploy": "identical"}));
    }
}
