//! The records of the format: their keys and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `g/<gem>/<number>` | a version on a platform: its specification, file and state |
//! | `f/<stem>` | gem and number that own the file name `<stem>.gem`, even after their deletion |
//! | `p/<gem>/<number>` | in a proxy: a version whose file was fetched, and its index line |
//!
//! A number is `VERSION` or `VERSION-PLATFORM`.

use crate::name;
use crate::spec::{Requirement, Spec};
use packhouse_sdk::{Digest, Error, Repository, Version};
use serde::{Deserialize, Serialize};

pub(crate) const GEMS: &str = "g/";

pub(crate) fn versions(gem: &str) -> String {
    format!("g/{gem}/")
}

pub(crate) fn version(gem: &str, number: &str) -> String {
    format!("g/{gem}/{number}")
}

pub(crate) fn file(stem: &str) -> String {
    format!("f/{stem}")
}

pub(crate) fn all_fetched(gem: &str) -> String {
    format!("p/{gem}/")
}

pub(crate) fn fetched(gem: &str, number: &str) -> String {
    format!("p/{gem}/{number}")
}

/// A version on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GemRecord {
    pub(crate) spec: Spec,
    pub(crate) sha256: Digest,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Time of the push, in ms since 1970.
    pub(crate) time: u64,
    /// Reason of a yank, which may be empty; `None` if the version is not yanked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) yanked: Option<String>,
}

impl GemRecord {
    /// Converts the record into an entry of the package list, with its file.
    pub(crate) fn listed_version(&self) -> Version {
        let spec = &self.spec;
        let path = format!("gems/{}.gem", spec.stem());
        let summary = if spec.summary.is_empty() { &spec.description } else { &spec.summary };
        let mut listed = Version::new(&spec.name, spec.number())
            .file(path, self.sha256.clone(), self.size)
            .summary(short(summary.lines().next().unwrap_or_default()));
        let ruby = spec.ruby.iter().map(text_of).collect::<Vec<_>>().join(", ");
        for (name, value) in [
            ("platform", spec.platform.as_str()),
            ("homepage", &spec.homepage),
            ("license", &spec.licenses.join(", ")),
            ("required_ruby_version", if ruby == ">= 0" { "" } else { &ruby }),
        ] {
            if !value.is_empty() {
                listed = listed.property(name, short(value));
            }
        }
        match &self.yanked {
            None => listed,
            Some(reason) if reason.is_empty() => listed.state("yanked"),
            Some(reason) => listed.state("yanked").property("reason", reason),
        }
    }
}

/// Returns the text of a requirement, such as `>= 1.0`.
pub(crate) fn text_of(requirement: &Requirement) -> String {
    format!("{} {}", requirement.0, requirement.1)
}

fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}

/// The gem and number that own a file name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileOwner {
    pub(crate) name: String,
    pub(crate) number: String,
}

/// A version whose file a proxy fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedVersion {
    /// SHA-256 in hex; `None` if the upstream does not state it.
    pub(crate) sha256: Option<String>,
    /// Time of the push, in ms since 1970.
    pub(crate) published: Option<u64>,
    /// The line of the upstream's `info`, unchanged.
    pub(crate) line: String,
    /// True if the upstream no longer lists the version.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// Finds the version whose file name has this stem. Returns `None` if it does not exist or was
/// deleted.
pub(crate) fn by_stem(repository: &Repository, stem: &str) -> Result<Option<GemRecord>, Error> {
    if name::splits(stem).is_empty() {
        return Ok(None);
    }
    let Some(owner) = repository.get_json::<FileOwner>(&file(stem))? else { return Ok(None) };
    let FileOwner { name, number } = owner.value;
    Ok(repository.get_json::<GemRecord>(&version(&name, &number))?.map(|entry| entry.value))
}
