//! The members of a composer.json that are published.

use crate::archive::invalid_package;
use crate::name::is_name;
use packhouse_sdk::Failure;
use serde_json::{Map, Value};

/// The members that become part of the metadata. Members that Composer reads only in a root package
/// are left out.
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
/// The members that map names to strings.
const LINKS: [&str; 6] = ["require", "require-dev", "conflict", "replace", "provide", "suggest"];

/// The content of a composer.json.
#[derive(Debug)]
pub(crate) struct ComposerJson {
    pub(crate) name: String,
    /// The version that the composer.json states, if any.
    pub(crate) version: Option<String>,
    pub(crate) members: Map<String, Value>,
}

/// Reads a composer.json.
///
/// # Errors
/// 400 `invalid_package`, with a sentence for the author.
pub(crate) fn read(bytes: &[u8]) -> Result<ComposerJson, Failure> {
    let Ok(Value::Object(all)) = serde_json::from_slice(bytes) else {
        return Err(invalid_package("Its composer.json is not a JSON object"));
    };
    let text = |member: &str| all.get(member).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").ok_or_else(|| invalid_package("Its composer.json has no name"))?;
    if !is_name(&name) {
        let name = quoted(&name);
        return Err(invalid_package(&format!(
            "The name {name} in its composer.json must have the form vendor/package, in lower case"
        )));
    }
    for member in LINKS {
        if !all.get(member).is_none_or(is_links) {
            let text = format!("`{member}` in its composer.json must map names to strings");
            return Err(invalid_package(&text));
        }
    }
    let version = text("version");
    let known =
        all.into_iter().filter(|(member, value)| MEMBERS.contains(&member.as_str()) && !is_empty(value));
    Ok(ComposerJson { name, version, members: known.collect() })
}

/// The text as a JSON string, in quotation marks.
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

/// True if the value is null or has no content. PHP writes an empty map as an empty list.
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
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
