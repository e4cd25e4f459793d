//! A setting's text and its source.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::key::SettingKey;

/// Source of a setting's text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    Default,
    /// The file, and the number of the line.
    File(PathBuf, usize),
    Environment(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path, line) => write!(f, "file {}, line {line}", path.display()),
            Source::Environment(name) => write!(f, "environment {name}"),
            Source::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Setting {
    /// Row in the table of settings.
    pub key: &'static SettingKey,
    pub text: String,
    pub source: Source,
}

/// All settings, by their names in the file.
pub type Settings = BTreeMap<String, Setting>;
