//! Settings that repositories of a format have.

use serde::{Deserialize, Serialize};

use super::check;

/// One setting of a repository.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Setting {
    /// Which values it may have.
    pub kind: SettingKind,
    /// In force where nothing is set.
    pub default: serde_json::Value,
    /// Of a `choice`: what may be chosen.
    #[serde(default)]
    pub choices: Vec<String>,
    /// One line for people.
    #[serde(default)]
    pub summary: String,
}

/// Which values a setting may have.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number, not negative.
    Integer,
    /// Text.
    Text,
    /// One of `choices`.
    Choice,
    /// A list of texts.
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
