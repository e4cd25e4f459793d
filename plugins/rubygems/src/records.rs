//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `g/<gem>/<number>` | a version on a platform: what it says of itself, its file, whether it is yanked |
//! | `f/<stem>` | which gem and number has the file `<stem>.gem`, or had it: the record stays when the version goes |
//! | `p/<gem>/<number>` | a proxy's: a version whose file was fetched, and its SHA-256 as the index had it |
//!
//! A number is `VERSION`, or `VERSION-PLATFORM`.

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
    /// Bytes.
    pub(crate) size: u64,
    /// When it was pushed, in ms since 1970.
    pub(crate) time: u64,
    /// Why nobody should use it; the reason may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) yanked: Option<String>,
}

impl GemRecord {
    /// What people see of it, with its file.
    pub(crate) fn shown(&self) -> Version {
        let spec = &self.spec;
        let path = format!("gems/{}.gem", spec.stem());
        let summary = if spec.summary.is_empty() { &spec.description } else { &spec.summary };
        let mut shown = Version::new(&spec.name, spec.number())
            .file(path, self.sha256.clone(), self.size)
            .summary(short(summary.lines().next().unwrap_or_default()));
        let asked = spec.ruby.iter().map(text_of).collect::<Vec<_>>().join(", ");
        for (name, value) in [
            ("platform", spec.platform.as_str()),
            ("homepage", &spec.homepage),
            ("license", &spec.licenses.join(", ")),
            ("required_ruby_version", if asked == ">= 0" { "" } else { &asked }),
        ] {
            if !value.is_empty() {
                shown = shown.property(name, short(value));
            }
        }
        match &self.yanked {
            None => shown,
            Some(reason) if reason.is_empty() => shown.state("yanked"),
            Some(reason) => shown.state("yanked").property("reason", reason),
        }
    }
}

/// As `>= 1.0`.
pub(crate) fn text_of(requirement: &Requirement) -> String {
    format!("{} {}", requirement.0, requirement.1)
}

fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}

/// Whose a file's name is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) number: String,
}

/// A version whose file a proxy fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fetched {
    /// In hex; none where the upstream does not tell.
    pub(crate) sha256: Option<String>,
    /// In ms since 1970.
    pub(crate) published: Option<u64>,
    /// The line of the index.
    pub(crate) line: String,
    /// Whether the upstream lists it no longer.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// The version that has the file of this stem.
pub(crate) fn by_stem(repository: &Repository, stem: &str) -> Result<Option<GemRecord>, Error> {
    if name::cuts(stem).is_empty() {
        return Ok(None);
    }
    let Some(holder) = repository.get_json::<Holder>(&file(stem))? else { return Ok(None) };
    let Holder { name, number } = holder.value;
    Ok(repository.get_json::<GemRecord>(&version(&name, &number))?.map(|entry| entry.value))
}
