//! What a policy says of itself: a JSON object, of which members that this host does not know are ignored.

use std::borrow::Cow;

use packhouse_names::Folding;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Bytes of a description at most.
const MAX_BYTES: usize = 64 << 10;
/// Characters of a name and of a version.
const MAX_NAME: usize = 64;
/// The format, as a JSON Schema has it, of a text that is a pattern of packages, or of `PACKAGE@VERSION`.
const PACKAGE_PATTERN: &str = "package-pattern";

/// What a policy says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct PolicyDescription {
    /// `a-z`, `0-9` and `-`.
    pub name: String,
    /// Its own.
    pub version: String,
    /// One line for people.
    #[serde(default)]
    pub summary: String,
    /// A JSON Schema of its settings.
    #[serde(default)]
    pub settings: Value,
    /// What it is told only if it asks for it.
    #[serde(default)]
    wants: Vec<String>,
    /// What it never looks at.
    #[serde(default)]
    ignores: Vec<String>,
}

/// What a policy is told only if it asks for it, since it costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedFact {
    /// Packages that the organization uses.
    Names,
}

/// What a policy is told of a version unless it says that it never looks at it, since it costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFact {
    /// What is signed of it.
    Provenance,
    /// What is known to be wrong with it.
    Advisories,
}

impl PolicyDescription {
    /// Reads one; says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<PolicyDescription, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("its description has {} bytes, over {MAX_BYTES}", text.len()));
        }
        let read: PolicyDescription =
            serde_json::from_str(text).map_err(|error| format!("its description cannot be read: {error}"))?;
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=MAX_NAME).contains(&read.name.len()) || !read.name.chars().all(is_word) {
            return Err(format!("its name {:?} is not 1 to {MAX_NAME} of a-z, 0-9 and -", read.name));
        }
        if !(1..=MAX_NAME).contains(&read.version.len()) || read.version.chars().any(char::is_control) {
            return Err(format!("its version {:?} is not 1 to {MAX_NAME} characters", read.version));
        }
        Ok(read)
    }

    /// These settings with each list of package patterns in the spelling of names that this folding makes: the component compares them as
    /// they are with names as the format spells them.
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

    /// Whether it wants to be told this.
    #[must_use]
    pub fn wants(&self, fact: WantedFact) -> bool {
        let word = match fact {
            WantedFact::Names => "names",
        };
        self.wants.iter().any(|wanted| wanted == word)
    }

    /// Whether it never looks at this.
    #[must_use]
    pub fn ignores(&self, fact: IgnoredFact) -> bool {
        let word = match fact {
            IgnoredFact::Provenance => "provenance",
            IgnoredFact::Advisories => "advisories",
        };
        self.ignores.iter().any(|ignored| ignored == word)
    }
}

/// A version behind an `@` stays as it is; an `@` at the beginning is part of a name.
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
    fn lists_of_package_patterns_are_spelt_as_names_are() {
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
    fn what_is_wrong_is_named() {
        let good = r#"{"name": "a-1", "version": "1", "wants": ["names", "weather"], "new": 1}"#;
        let read = PolicyDescription::parse(good).unwrap();
        assert!(read.wants(WantedFact::Names) && !read.ignores(IgnoredFact::Provenance));
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
        assert!(PolicyDescription::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().contains("over"));
    }
}
