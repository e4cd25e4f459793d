//! Settings of a repository. The host defines some for every format, and a format's plugin declares
//! others.
//!
//! The database stores only values that were set explicitly. The API and plugins see all settings,
//! with defaults for the rest.

mod form;
mod words;

use packhouse_names::Folding;
use packhouse_runtime::{Description, RepositoryView, Setting, SettingKind};
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value, json};
use url::Url;

pub use form::{Form, FormSetting, SettingGroup, form_settings, settings_of_kind};
pub use words::choice_title;

/// Settings that contain patterns of package names.
const CLAIMED_NAMES: &str = "claimed_names";
const PATTERNS: [&str; 2] = [CLAIMED_NAMES, "min_release_age_except"];

/// Type of a setting's value.
enum Shape<'a> {
    Switch,
    Seconds,
    /// An integer number of bytes, or null for no limit.
    Bytes,
    Text,
    /// The address of a server, or null. The value must not contain a credential, because it is
    /// stored and displayed unchanged.
    Address,
    Choice(Vec<&'a str>),
    List,
}

/// Setting that the database stores in its own column; [`effective`] adds it.
pub const PUBLIC: &str = "public";
/// Name under which a plugin finds the address of a proxy's upstream. In the API, the address is a
/// field of the repository, not a setting.
pub const UPSTREAM: &str = "upstream";
/// Name under which a plugin finds the maximum size of a file, in bytes. The operator sets this
/// limit for a whole format.
pub const MAX_FILE_BYTES: &str = "max_file_bytes";

/// Maximum size of all files in a repository together, in bytes.
const QUOTA_BYTES: &str = "quota_bytes";
/// Days for which users can restore deleted items; 0 turns this off.
const TRASH_DAYS: &str = "trash_days";
const DEFAULT_TRASH_DAYS: u64 = 7;

/// Time limit in seconds for the next byte from an upstream; null uses the server's configuration.
const UPSTREAM_TIMEOUT: &str = "upstream_timeout_s";

/// Settings of the connection to a proxy's upstream: the forward proxy, and the trusted certificate
/// authorities.
pub const WAYS: [&str; 2] = ["egress_proxy", "ca_pem"];

/// Returns the host's settings as name, type and default, in the order of the API's description.
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
    let settings = description.settings.iter();
    settings.map(|(name, setting)| (name.as_str(), declared_shape(setting), setting.default.clone()))
}

fn declared_shape(setting: &Setting) -> Shape<'_> {
    match setting.kind {
        SettingKind::Boolean => Shape::Switch,
        SettingKind::Integer => Shape::Seconds,
        SettingKind::Text => Shape::Text,
        SettingKind::Choice => Shape::Choice(setting.choices.iter().map(String::as_str).collect()),
        SettingKind::List => Shape::List,
    }
}

/// Checks the settings in a request: an object of known names with values of the right types. Null
/// resets a setting to its default. The error is a complete sentence for the client.
pub fn check(requested: &Value, description: Option<&Description>) -> Result<Map<String, Value>, String> {
    let Value::Object(requested) = requested else { return Err("`settings` must be an object.".to_owned()) };
    for (name, value) in requested {
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
                return Err(format!("The setting `{name}` must be {wants}."));
            }
            Some(_) => {}
        }
    }
    Ok(requested.clone())
}

fn fits(shape: &Shape<'_>, value: &Value) -> Result<(), String> {
    let (right, wants) = match shape {
        Shape::Switch => (value.is_boolean(), "true or false".to_owned()),
        Shape::Seconds | Shape::Bytes => (value.is_u64(), "an integer that is not negative".to_owned()),
        Shape::Text => (value.is_string(), "a string".to_owned()),
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
            "a list of strings".to_owned(),
        ),
    };
    if right { Ok(()) } else { Err(wants) }
}

fn is_plain(url: &Url) -> bool {
    url.has_host() && url.username().is_empty() && url.password().is_none()
}

/// Merges changes into the stored settings. Null removes a setting.
pub fn merge(stored: &str, requested: Map<String, Value>) -> Map<String, Value> {
    let mut merged: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    for (name, value) in requested {
        match value {
            Value::Null => merged.remove(&name),
            value => merged.insert(name, value),
        };
    }
    merged
}

/// Returns every setting with its effective value: the stored value, or the default if none is
/// stored.
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

/// Returns the number of days for which users can restore deleted items, from a repository's stored
/// settings.
pub fn trash_days(stored: &str) -> u64 {
    let stored: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    stored.get(TRASH_DAYS).and_then(Value::as_u64).unwrap_or(DEFAULT_TRASH_DAYS)
}

/// Returns the name patterns that a repository claims, from its stored settings.
pub fn claimed_names(stored: &str) -> Vec<String> {
    let stored: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    let patterns = stored.get(CLAIMED_NAMES).and_then(Value::as_array).into_iter().flatten();
    patterns.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Normalises the patterns of package names in the settings by the format's rules for names.
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

/// Returns the repository as its plugin sees it. Every setting of the format has a value, and
/// `upstream` is the address of a proxy's upstream. `max_file_bytes` is the limit in `description`,
/// which contains the operator's limit if one is set. Name patterns are normalised by the format's
/// rules for names.
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
    fn only_known_settings_of_their_type_are_accepted() {
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
    fn effective_settings_include_every_default() {
        let all = effective(r#"{"offline": true}"#, true, None);
        assert_eq!(all["offline"], true);
        assert_eq!(all["public"], true);
        assert_eq!(all["redeploy"], "deny");
        assert_eq!(all.len(), own().len());
    }

    #[test]
    fn patterns_are_normalised_like_names() {
        let stored = r#"{"claimed_names": ["Our.*", "x"], "min_release_age_except": ["Demo_App"]}"#;
        assert_eq!(claimed_names(stored), ["Our.*", "x"]);
        assert!(claimed_names("{}").is_empty());
        let mut all = effective(stored, false, None);
        fold_patterns(&mut all, Folding::Pep503);
        assert_eq!(all["claimed_names"], json!(["our-*", "x"]));
        assert_eq!(all["min_release_age_except"], json!(["demo-app"]));
    }

    #[test]
    fn null_resets_a_setting() {
        let requested = json!({"offline": null, "redeploy": "identical"});
        let merged =
            merge(r#"{"offline": true, "keep_untagged": false}"#, requested.as_object().unwrap().clone());
        assert_eq!(Value::Object(merged), json!({"keep_untagged": false, "redeploy": "identical"}));
    }
}
