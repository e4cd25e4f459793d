//! The languages that a project can be written in.

use anyhow::{Error, Result, bail};
use std::path::Path;
use std::str::FromStr;

/// What a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the SDK.
    Rust,
    /// By componentize-py.
    Python,
    /// By componentize-js or componentize-qjs.
    JavaScript,
}

impl Language {
    /// All, by the names that they have on the command line, which those of their templates' folders are too.
    pub const ALL: [(&'static str, Self); 3] =
        [("rust", Self::Rust), ("python", Self::Python), ("javascript", Self::JavaScript)];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, language)| *language == self).map_or("", |(name, _)| name)
    }

    /// What the project in this folder is written in.
    ///
    /// # Errors
    /// Where there is no project.
    pub fn of(folder: &Path) -> Result<Self> {
        match folder {
            folder if folder.join("Cargo.toml").is_file() => Ok(Self::Rust),
            folder if folder.join("app.py").is_file() => Ok(Self::Python),
            folder if folder.join("build.mjs").is_file() => Ok(Self::JavaScript),
            folder => bail!(
                "no project of a plugin is in {}: it has no Cargo.toml, app.py or build.mjs; `packhouse plugins new NAME` writes one",
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
                bail!("there is no template in {name:?}; there are {}", known.join(", "))
            }
        }
    }
}
