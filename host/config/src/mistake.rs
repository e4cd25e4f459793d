//! What is wrong with the settings: a sentence for each mistake, which names the key, what was written, where, and what to write
//! instead.

use std::fmt;

use super::key::Kind;
use super::setting::Setting;

/// One mistake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// The setting's name in the file, where it is one setting's.
    pub key: Option<String>,
    /// The whole sentence.
    pub sentence: String,
}

impl Mistake {
    /// Of a text that is not what this setting takes; `reason` goes on from "KEY = TEXT (SOURCE)". Secrets are not repeated.
    pub(crate) fn of(name: &str, setting: Option<&Setting>, reason: &str) -> Mistake {
        let sentence = match setting {
            Some(Setting { key, source, .. }) if key.kind == Kind::Secret => {
                format!("{name} ({source}) {reason}")
            }
            Some(Setting { text, source, .. }) => format!("{name} = {text:?} ({source}) {reason}"),
            None => format!("{name} {reason}"),
        };
        Mistake { key: Some(name.to_owned()), sentence }
    }

    /// Of no one setting.
    pub(crate) fn general(sentence: impl Into<String>) -> Mistake {
        Mistake { key: None, sentence: sentence.into() }
    }
}

/// All mistakes of the settings; at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => f.write_str(&only.sentence),
            several => {
                write!(f, "the configuration has {} mistakes:", several.len())?;
                several.iter().try_for_each(|mistake| write!(f, "\n  {}", mistake.sentence))
            }
        }
    }
}

impl std::error::Error for Mistakes {}
