//! Errors in the settings. Each error is a sentence that contains the setting's name, value and
//! source, and the expected form.

use std::fmt;

use super::key::ValueKind;
use super::setting::Setting;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// Name of the setting in the file; `None` if the error does not concern a single setting.
    pub key: Option<String>,
    pub sentence: String,
}

impl ConfigError {
    /// Creates an error about the value of one setting; `reason` continues "KEY = TEXT (SOURCE)".
    /// The error does not contain the text of a secret.
    pub(crate) fn of(name: &str, setting: Option<&Setting>, reason: &str) -> ConfigError {
        let sentence = match setting {
            Some(Setting { key, source, .. }) if key.kind == ValueKind::Secret => {
                format!("{name} ({source}) {reason}")
            }
            Some(Setting { text, source, .. }) => format!("{name} = {text:?} ({source}) {reason}"),
            None => format!("{name} {reason}"),
        };
        ConfigError { key: Some(name.to_owned()), sentence }
    }

    /// Creates an error that does not concern a single setting.
    pub(crate) fn general(sentence: impl Into<String>) -> ConfigError {
        ConfigError { key: None, sentence: sentence.into() }
    }
}

/// All errors in the settings, at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => f.write_str(&only.sentence),
            several => {
                write!(f, "the configuration has {} mistakes:", several.len())?;
                several.iter().try_for_each(|error| write!(f, "\n  {}", error.sentence))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}
