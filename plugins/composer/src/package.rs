//! What a package says of itself: its composer.json, as far as it is of use to others.

use crate::archive::bad;
use crate::name;
use packhouse_sdk::Failure;
use serde_json::{Map, Value};

/// What reaches the metadata. What counts for a root package alone stays out.
const MEMBERS: [&str; 20] = [
    "abandoned",
    "authors",
    "autoload",
    "bin",
    "conflict",
    "description",
    "extra",
    "funding",
    "homepage",
    "include-path",
    "keywords",
    "license",
    "provide",
    "replace",
    "require",
    "require-dev",
    "suggest",
    "support",
    "target-dir",
    "type",
];

/// A package's composer.json.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where it says one itself.
    pub(crate) version: Option<String>,
    pub(crate) members: Map<String, Value>,
}

impl Package {
    /// Reads one.
    ///
    /// # Errors
    /// 400 `invalid_package` in a sentence for whoever made it.
    pub(crate) fn read(text: &[u8]) -> Result<Self, Failure> {
        let Ok(Value::Object(all)) = serde_json::from_slice::<Value>(text) else {
            return Err(bad("Its composer.json is no JSON object"));
        };
        let text = |member: &str| all.get(member).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").ok_or_else(|| bad("Its composer.json says no name"))?;
        if !name::is_name(&name) {
            return Err(bad(format!(
                "Its composer.json says name {name:?}, and a name is vendor/package in lower case"
            )));
        }
        for member in ["require", "require-dev", "conflict", "replace", "provide", "suggest"] {
            let texts = |links: &Map<String, Value>| links.values().all(Value::is_string);
            let empty = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
            let fine =
                all.get(member).is_none_or(|links| links.as_object().is_some_and(texts) || empty(links));
            if !fine {
                return Err(bad(format!("In its composer.json {member} is no map of names to texts")));
            }
        }
        let version = text("version");
        let known =
            all.into_iter().filter(|(member, value)| MEMBERS.contains(&member.as_str()) && !is_empty(value));
        Ok(Self { name, version, members: known.collect() })
    }
}

/// PHP writes an empty map as an empty list, so that neither is worth anything.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(Map::is_empty)
        || value.is_null()
}

#[cfg(test)]
mod tests {
    use super::Package;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_composer_json_is_read() {
        let text = r#"{"name": "acme/demo", "version": "1.0", "require": {"php": ">=8"}, "require-dev": [], "scripts": {"x": "y"}, "extra": {"a": 1}}"#;
        let package = Package::read(text.as_bytes()).unwrap();
        assert_eq!((package.name.as_str(), package.version.as_deref()), ("acme/demo", Some("1.0")));
        assert_eq!(json!(package.members), json!({"require": {"php": ">=8"}, "extra": {"a": 1}}));
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"name": "demo"}"#,
            r#"{"name": "Acme/x"}"#,
            r#"{"name": "a/b", "require": {"c": 1}}"#,
            r#"{"name": "a/b", "require": ["c"]}"#,
        ] {
            assert_eq!(Package::read(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[{}\\[\\]\":,a-z/0-9 ]{0,60}") {
            let _ = Package::read(text.as_bytes());
        }
    }
}
