//! A setting as it was written: its text, and where that stands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::key::Key;

/// Where a setting's text came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// Nothing set it.
    Default,
    /// This line of the file.
    File(PathBuf, usize),
    /// This environment variable.
    Environment(String),
    /// This flag of the command line.
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

/// One setting's text and source.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The row of the table.
    pub key: &'static Key,
    /// What was written.
    pub text: String,
    /// Where.
    pub source: Source,
}

/// Every setting by its name in the file.
pub type Settings = BTreeMap<String, Setting>;
