//! A policy's description: a JSON object. Members that this host does not know are ignored.

use std::borrow::Cow;

use packhouse_names::Folding;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most bytes of a description.
const MAX_BYTES: usize = 64 << 10;
/// Most characters of a name and of a version.
const MAX_NAME: usize = 64;
/// JSON Schema `format` of a string that is a pattern of packages, or of `PACKAGE@VERSION`.
const PACKAGE_PATTERN: &str = "package-pattern";

#[derive(Clone, Debug, Deserialize)]
pub struct PolicyDescription {
    /// Name of `a-z`, `0-9` and `-`.
    pub name: String,
    pub version: String,
    /// Description in one line, for people.
    #[serde(default)]
    pub summary: String,
    /// A JSON Schema of its settings.
    #[serde(default)]
    pub settings: Value,
    /// Optional facts that the policy requests.
    #[serde(default)]
    wants: Vec<String>,
    /// Facts that the policy never uses.
    #[serde(default)]
    ignores: Vec<String>,
}

/// A fact that a policy receives only on request, because it is costly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalFact {
    /// Names of packages that the organization uses.
    Names,
}

/// A costly fact about a version that a policy receives unless it declares that it ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFact {
    /// Signed statements about the version.
    Provenance,
    /// Known problems of the version.
    Advisories,
}

impl PolicyDescription {
    /// Parses a description. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<PolicyDescription, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("its description has {} bytes; the limit is {MAX_BYTES}", text.len()));
        }
        let read: PolicyDescription =
            serde_json::from_str(text).map_err(|error| format!("its description cannot be read: {error}"))?;
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=MAX_NAME).contains(&read.name.len()) || !read.name.chars().all(is_word) {
            return Err(format!(
                "its name {:?} must have 1 to {MAX_NAME} characters of a-z, 0-9 and -",
                read.name
            ));
        }
        if !(1..=MAX_NAME).contains(&read.version.len()) || read.version.chars().any(char::is_control) {
            return Err(format!("its version {:?} must have 1 to {MAX_NAME} characters", read.version));
        }
        Ok(read)
    }

    /// Applies this folding to each list of package patterns in the settings. The component
    /// compares the patterns literally with the names as the format spells them.
    pub(crate) fn folded<'a>(&self, settings: &'a str, folding: Folding) -> Cow<'a, str> {
        if folding == Folding::None {
            return Cow::Borrowed(settings);
        }
        let Ok(mut read) = serde_json::from_str::<Map<String, Value>>(settings) else {
            return Cow::Borrowed(settings);
        };
        for (name, value) in &mut read {
            let format = self.settings.pointer(&format!("/properties/{name}/items/format"));
            if format.and_then(Value::as_str) == Some(PACKAGE_PATTERN) {
                for pattern in value.as_array_mut().into_iter().flatten() {
                    fold(pattern, folding);
                }
            }
        }
        Cow::Owned(Value::Object(read).to_string())
    }

    /// Returns true if the policy requests this fact.
    #[must_use]
    pub fn wants(&self, fact: OptionalFact) -> bool {
        let word = match fact {
            OptionalFact::Names => "names",
        };
        self.wants.iter().any(|requested| requested == word)
    }

    /// Returns true if the policy ignores this fact.
    #[must_use]
    pub fn ignores(&self, fact: IgnoredFact) -> bool {
        let word = match fact {
            IgnoredFact::Provenance => "provenance",
            IgnoredFact::Advisories => "advisories",
        };
        self.ignores.iter().any(|ignored| ignored == word)
    }
}

/// Folds the package name. A version after an `@` stays as it is, but an initial `@` belongs to the
/// name.
fn fold(pattern: &mut Value, folding: Folding) {
    let Value::String(text) = pattern else { return };
    let (package, version) = match text.rfind('@').filter(|at| *at > 0) {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    *text = format!("{}{version}", folding.fold(package));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_patterns_are_folded_like_names() {
        let schema = r#"{"name": "a", "version": "1", "settings": {"properties": {
            "claimed": {"type": "array", "items": {"type": "string", "format": "package-pattern"}},
            "allow": {"type": "array", "items": {"type": "string"}}}}}"#;
        let read = PolicyDescription::parse(schema).unwrap();
        let settings = r#"{"allow":["A_b"],"claimed":["Evil_*","A.b@1.0_X"],"hours":1}"#;
        let folded = r#"{"allow":["A_b"],"claimed":["evil-*","a-b@1.0_X"],"hours":1}"#;
        assert_eq!(read.folded(settings, Folding::Pep503), folded);
        assert_eq!(read.folded(settings, Folding::None), settings);
    }

    #[test]
    fn the_error_names_the_invalid_member() {
        let good = r#"{"name": "a-1", "version": "1", "wants": ["names", "weather"], "new": 1}"#;
        let read = PolicyDescription::parse(good).unwrap();
        assert!(read.wants(OptionalFact::Names) && !read.ignores(IgnoredFact::Provenance));
        let some = r#"{"name": "a-1", "version": "1", "ignores": ["provenance", "weather"]}"#;
        let read = PolicyDescription::parse(some).unwrap();
        assert!(read.ignores(IgnoredFact::Provenance) && !read.ignores(IgnoredFact::Advisories));
        for (text, named) in [
            ("[]", "cannot be read"),
            (r#"{"name": "A", "version": "1"}"#, "name"),
            (r#"{"name": "", "version": "1"}"#, "name"),
            (r#"{"name": "a", "version": ""}"#, "version"),
        ] {
            assert!(PolicyDescription::parse(text).unwrap_err().contains(named), "{text}");
        }
        assert!(PolicyDescription::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().contains("the limit is"));
    }
}
