//! Fields of a query or a form, in their order. A name may occur several times.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Pairs of name and value, in their order.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// Parses the text of a query or of an `application/x-www-form-urlencoded` form.
    pub(crate) fn read(bytes: &[u8]) -> Fields {
        Fields(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// Returns the first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of this name, trimmed; empty if the name is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns all values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether one of the values of this name equals `value`.
    pub(crate) fn holds(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|known| known == value)
    }

    /// Returns all values of this name as a JSON array.
    pub(crate) fn list(&self, name: &str) -> Value {
        self.all(name).map(Value::from).collect()
    }

    /// Returns the text as a JSON string, or null if it is empty.
    pub(crate) fn or_null(&self, name: &str) -> Value {
        match self.text(name) {
            "" => Value::Null,
            text => Value::from(text),
        }
    }
}
