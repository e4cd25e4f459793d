//! Names and values, of a query or a form: in their order, a name as often as it came.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names and values.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// As a query or a form writes them.
    pub(crate) fn read(bytes: &[u8]) -> Fields {
        Fields(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value of this name, without space around it; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// Whether there is a value of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether this value stands under this name.
    pub(crate) fn holds(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|known| known == value)
    }

    /// All values of this name as a list of JSON.
    pub(crate) fn list(&self, name: &str) -> Value {
        self.all(name).map(Value::from).collect()
    }

    /// The text as JSON, null where it is empty.
    pub(crate) fn or_null(&self, name: &str) -> Value {
        match self.text(name) {
            "" => Value::Null,
            text => Value::from(text),
        }
    }
}
