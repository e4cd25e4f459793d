//! What is known of a project, as every view of it is rendered from.

use crate::records::FileRecord;
use crate::version::Version;
use packhouse_sdk::{Failure, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What is known of a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    /// Normalised, the lowest first.
    pub(crate) versions: Vec<String>,
    /// By version, then by name.
    pub(crate) files: Vec<File>,
    /// Those that a policy withholds, with its words as the reason of a yank: listed where nobody offers a file of that name.
    pub(crate) denied: Vec<File>,
}

/// A file of a project; as a proxy remembers it, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct File {
    pub(crate) filename: String,
    pub(crate) version: String,
    /// Hex by the algorithm's name, as the Simple API has them.
    pub(crate) hashes: BTreeMap<String, String>,
    pub(crate) size: Option<u64>,
    /// As it is written.
    pub(crate) time: Option<String>,
    pub(crate) requires_python: Option<String>,
    /// Why it was yanked; the reason may be empty.
    pub(crate) yanked: Option<String>,
    pub(crate) metadata: Metadata,
    pub(crate) signature: bool,
    pub(crate) provenance: bool,
    /// Where an upstream has it.
    pub(crate) url: Option<String>,
    /// Whether the upstream has it no longer.
    pub(crate) withdrawn: bool,
    /// Whether a proxy has compared its bytes with what is said of them here.
    pub(crate) checked: bool,
    /// Where an upstream has what is signed of it.
    pub(crate) provenance_url: Option<String>,
    /// What is stored of it, where it is.
    #[serde(skip)]
    pub(crate) record: Option<FileRecord>,
}

/// Whether a file may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Offered,
    /// A policy withholds it, with its words as the reason of a yank: it is listed where nobody offers a file of that name.
    Denied,
}

/// What becomes of a file that a repository has.
pub(crate) type Take<'t> = dyn FnMut(File, Standing) -> Result<(), Failure> + 't;

/// Whether a file's metadata can be had without the file (PEP 658).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metadata {
    #[default]
    Absent,
    /// Without a digest to check them by.
    Unchecked,
    /// With their SHA-256 in hex.
    Sha256(String),
}

impl Project {
    /// Adds what another repository has; of two files of one name the first stands.
    pub(crate) fn join(&mut self, other: Self) {
        let names: BTreeSet<String> = self.files.iter().map(|file| file.filename.clone()).collect();
        self.files.extend(other.files.into_iter().filter(|file| !names.contains(&file.filename)));
        let known: BTreeSet<String> = self.versions.iter().map(|version| key_of(version)).collect();
        self.versions.extend(other.versions.into_iter().filter(|version| !known.contains(&key_of(version))));
        self.denied.extend(other.denied);
        self.sort();
    }

    /// Lists what policies withhold beside what is offered.
    pub(crate) fn list_denied(&mut self) {
        let mut names: BTreeSet<String> = self.files.iter().map(|file| file.filename.clone()).collect();
        for file in std::mem::take(&mut self.denied) {
            if names.insert(file.filename.clone()) {
                self.files.push(file);
            }
        }
        let known: BTreeSet<String> = self.versions.iter().map(|version| key_of(version)).collect();
        let denied = self.files.iter().filter(|file| !known.contains(&key_of(&file.version)));
        let denied: BTreeSet<String> = denied.map(|file| file.version.clone()).collect();
        self.versions.extend(denied);
        self.sort();
    }

    /// Puts versions and files in their order.
    pub(crate) fn sort(&mut self) {
        let Self { versions, files, .. } = self;
        let ranks = ranks(versions.iter().chain(files.iter().map(|file| &file.version)));
        let rank = |version: &String| ranks.get(version).copied();
        versions.sort_by_cached_key(|version| (rank(version), version.clone()));
        files.sort_by_cached_key(|file| (rank(&file.version), file.filename.clone()));
    }
}

/// Versions in their order, each in one spelling.
pub(crate) fn in_order(versions: BTreeSet<String>) -> Vec<String> {
    let ranks = ranks(versions.iter());
    let mut versions: Vec<String> = versions.into_iter().collect();
    versions.sort_by_cached_key(|version| (ranks.get(version).copied(), version.clone()));
    versions.dedup_by_key(|version| key_of(version));
    versions
}

/// Where each of these versions stands among them: the same for those that are equal. Each text is read once, however many files it has.
fn ranks<'a>(versions: impl Iterator<Item = &'a String>) -> HashMap<String, usize> {
    let distinct: HashSet<&String> = versions.collect();
    let mut parsed: Vec<(Option<Version>, &String)> =
        distinct.into_iter().map(|text| (Version::parse(text), text)).collect();
    parsed.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let (mut rank, mut before) = (0, None);
    let ranked = parsed.iter().map(|(version, text)| {
        rank += usize::from(before.replace(version).is_some_and(|before| before != version));
        ((*text).clone(), rank)
    });
    ranked.collect()
}

/// The key of a version that is written in any way.
pub(crate) fn key_of(version: &str) -> String {
    Version::parse(version).map_or_else(|| version.to_owned(), |version| version.key())
}

impl File {
    /// What is stored under this name; `yanked` is why its version was yanked.
    pub(crate) fn of(filename: String, record: FileRecord, yanked: Option<String>) -> Self {
        // Of a source, only what its PKG-INFO says unchangeably could be announced; few do, and installers build it anyway.
        let wheel = filename.ends_with(".whl");
        Self {
            metadata: match record.metadata().filter(|_| wheel) {
                Some(digest) => Metadata::Sha256(digest.hex().to_owned()),
                None => Metadata::Absent,
            },
            filename,
            version: record.version.clone(),
            hashes: BTreeMap::from([("sha256".to_owned(), record.sha256.hex().to_owned())]),
            size: Some(record.size),
            time: Some(Timestamp::from_ms(record.time).to_rfc3339_micros()),
            requires_python: record.requires_python.clone(),
            yanked,
            signature: record.signature.is_some(),
            provenance: record.provenance.is_some(),
            url: None,
            withdrawn: false,
            checked: false,
            provenance_url: None,
            record: Some(record),
        }
    }
}
