//! The members of a composer.json that other packages need.

use crate::archive::bad;
use crate::name::is_name;
use packhouse_sdk::Failure;
use serde_json::{Map, Value};

/// Members that reach the metadata. Members that count for a root package alone stay out.
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
/// Members that are maps of names to texts.
const LINKS: [&str; 6] = ["require", "require-dev", "conflict", "replace", "provide", "suggest"];

/// A composer.json.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// None where the composer.json states no version.
    pub(crate) version: Option<String>,
    pub(crate) members: Map<String, Value>,
}

/// Reads a composer.json.
///
/// # Errors
/// 400 `invalid_package` in a sentence for its author.
pub(crate) fn read(bytes: &[u8]) -> Result<Package, Failure> {
    let Ok(Value::Object(all)) = serde_json::from_slice(bytes) else {
        return Err(bad("Its composer.json is no JSON object"));
    };
    let text = |member: &str| all.get(member).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").ok_or_else(|| bad("Its composer.json says no name"))?;
    if !is_name(&name) {
        let name = quoted(&name);
        return Err(bad(&format!(
            "Its composer.json says name {name}, and a name is vendor/package in lower case"
        )));
    }
    for member in LINKS {
        if !all.get(member).is_none_or(is_links) {
            return Err(bad(&format!("In its composer.json {member} is no map of names to texts")));
        }
    }
    let version = text("version");
    let known =
        all.into_iter().filter(|(member, value)| MEMBERS.contains(&member.as_str()) && !is_empty(value));
    Ok(Package { name, version, members: known.collect() })
}

/// A text in quotation marks, with escapes.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn is_links(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(links) => links.values().all(Value::is_string),
        _ => false,
    }
}

/// Whether the value says nothing. PHP writes an empty map as an empty list.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_composer_json_is_read() {
        let text = br#"{"name": "acme/demo", "version": "1.0", "require": {"php": ">=8"},
            "require-dev": [], "scripts": {"x": "y"}, "extra": {"a": 1.0}}"#;
        let package = read(text).unwrap();
        assert_eq!((package.name.as_str(), package.version.as_deref()), ("acme/demo", Some("1.0")));
        let members = Value::Object(package.members).to_string();
        assert_eq!(members, r#"{"extra":{"a":1.0},"require":{"php":">=8"}}"#);
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"name": "demo"}"#,
            r#"{"name": "Acme/x"}"#,
            r#"{"name": "a/b", "require": {"c": 1}}"#,
            r#"{"name": "a/b", "require": ["c"]}"#,
        ] {
            assert_eq!(read(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(read(b"\xff\xfe").unwrap_err().status, 400);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
