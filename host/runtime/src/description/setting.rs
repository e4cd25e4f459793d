//! Settings of a format's repositories.

use serde::{Deserialize, Serialize};

use super::check;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Setting {
    pub kind: SettingKind,
    /// The value if nothing is set.
    pub default: serde_json::Value,
    /// Allowed values of a `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Description in one line, for people.
    #[serde(default)]
    pub summary: String,
    /// Label for people. If it is empty, the name in words is the label.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Kinds of repository that the setting applies to; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repository_kinds: Vec<String>,
    /// Unit of an integer, so that people can enter it in a larger unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<SettingUnit>,
}

/// Unit in which a setting counts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingUnit {
    Seconds,
    Days,
    Bytes,
}

/// Type of a setting's values.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    Boolean,
    /// An integer that is not negative.
    Integer,
    Text,
    Choice,
    List,
}

impl Setting {
    pub(super) fn validate(&self, name: &str) -> Result<(), String> {
        let default = &self.default;
        let fits = match self.kind {
            SettingKind::Boolean => default.is_boolean(),
            SettingKind::Integer => default.is_u64(),
            SettingKind::Text => default.is_string(),
            SettingKind::Choice => self.choices.iter().any(|choice| default.as_str() == Some(choice)),
            SettingKind::List => {
                default.as_array().is_some_and(|list| list.iter().all(|item| item.is_string()))
            }
        };
        check(
            "a setting's default",
            &format!("{name}: {default}"),
            fits,
            "of its kind, or one of its choices",
        )
    }
}
