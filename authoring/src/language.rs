//! The languages in which a plugin project can be written.

use anyhow::{Error, Result, bail};
use std::path::Path;
use std::str::FromStr;

/// Programming language of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust with the SDK.
    Rust,
    /// Python, built with componentize-py.
    Python,
    /// JavaScript, built with componentize-js or componentize-qjs.
    JavaScript,
}

impl Language {
    /// All languages by their names. The command line and the folders of the templates use these
    /// names.
    pub const ALL: [(&'static str, Self); 3] =
        [("rust", Self::Rust), ("python", Self::Python), ("javascript", Self::JavaScript)];

    /// The language's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, language)| *language == self).map_or("", |(name, _)| name)
    }

    /// Detects the language of the project in this folder.
    ///
    /// # Errors
    /// Fails if the folder has no project.
    pub fn of(folder: &Path) -> Result<Self> {
        match folder {
            folder if folder.join("Cargo.toml").is_file() => Ok(Self::Rust),
            folder if folder.join("app.py").is_file() => Ok(Self::Python),
            folder if folder.join("build.mjs").is_file() => Ok(Self::JavaScript),
            folder => bail!(
                "{} is not a plugin project: it has no Cargo.toml, app.py or build.mjs. `packhouse plugins new NAME` writes one",
                folder.display()
            ),
        }
    }
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, language)) => Ok(*language),
            None => {
                let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
                bail!("unknown language {name:?}; choose one of {}", known.join(", "))
            }
        }
    }
}
