//! Model of a project's versions and files, from which the plugin renders all indexes.

use crate::records::FileRecord;
use crate::version::Version;
use packhouse_sdk::{Failure, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A project's versions and files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    /// Normalized, the lowest first.
    pub(crate) versions: Vec<String>,
    /// Sorted by version, then by name.
    pub(crate) files: Vec<ProjectFile>,
    /// Files that a policy does not let clients install. The index lists them as yanked, with the
    /// policy's text as the reason. A file of the same name in another repository replaces such an
    /// entry.
    pub(crate) denied: Vec<ProjectFile>,
}

/// A file of a project. Proxies also store it as a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProjectFile {
    pub(crate) filename: String,
    pub(crate) version: String,
    /// Digests in hex by algorithm, as in the Simple API.
    pub(crate) hashes: BTreeMap<String, String>,
    pub(crate) size: Option<u64>,
    /// Upload time in its original spelling.
    pub(crate) time: Option<String>,
    pub(crate) requires_python: Option<String>,
    /// Reason of the yank, which may be empty. `None` if the file is not yanked.
    pub(crate) yanked: Option<String>,
    pub(crate) metadata: MetadataFile,
    pub(crate) signature: bool,
    pub(crate) provenance: bool,
    /// The file's URL at the upstream.
    pub(crate) url: Option<String>,
    /// True if the upstream no longer lists the file.
    pub(crate) withdrawn: bool,
    /// True if the proxy has received the file's bytes and they match `hashes`.
    pub(crate) checked: bool,
    /// URL of the file's provenance object at the upstream.
    pub(crate) provenance_url: Option<String>,
    /// The file's record, if a hosted repository stores the file.
    #[serde(skip)]
    pub(crate) record: Option<FileRecord>,
}

/// Availability of a file for installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    Offered,
    /// A policy does not let clients install the file. The index lists it as yanked, with the
    /// policy's text as the reason, unless a repository offers a file of the same name.
    Denied,
}

/// Callback for each file of a repository.
pub(crate) type FileVisitor<'t> = dyn FnMut(ProjectFile, Availability) -> Result<(), Failure> + 't;

/// Availability of a file's metadata as a separate download (PEP 658).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetadataFile {
    #[default]
    Absent,
    /// Available without a digest.
    Unchecked,
    /// Available with its SHA-256 in hex.
    Sha256(String),
}

impl Project {
    /// Merges in another repository's project. If both have a file of the same name, the file of
    /// `self` stays.
    pub(crate) fn join(&mut self, other: Self) {
        let names: BTreeSet<String> = self.files.iter().map(|file| file.filename.clone()).collect();
        self.files.extend(other.files.into_iter().filter(|file| !names.contains(&file.filename)));
        let known: BTreeSet<String> = self.versions.iter().map(|version| key_of(version)).collect();
        self.versions.extend(other.versions.into_iter().filter(|version| !known.contains(&key_of(version))));
        self.denied.extend(other.denied);
        self.sort();
    }

    /// Moves the files of `denied` to `files`. Drops a file whose name is already listed. Adds the
    /// versions of the moved files.
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

    /// Sorts versions and files.
    pub(crate) fn sort(&mut self) {
        let Self { versions, files, .. } = self;
        let ranks = ranks(versions.iter().chain(files.iter().map(|file| &file.version)));
        let rank = |version: &String| ranks.get(version).copied();
        versions.sort_by_cached_key(|version| (rank(version), version.clone()));
        files.sort_by_cached_key(|file| (rank(&file.version), file.filename.clone()));
    }
}

/// Sorts versions and keeps one spelling of each.
pub(crate) fn in_order(versions: BTreeSet<String>) -> Vec<String> {
    let ranks = ranks(versions.iter());
    let mut versions: Vec<String> = versions.into_iter().collect();
    versions.sort_by_cached_key(|version| (ranks.get(version).copied(), version.clone()));
    versions.dedup_by_key(|version| key_of(version));
    versions
}

/// Returns the rank of each version. A higher version has a higher rank, and equal versions have
/// the same rank. Each text is parsed once, even if many files have it.
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

/// Returns the key that all spellings of a version share. An invalid version is its own key.
pub(crate) fn key_of(version: &str) -> String {
    Version::parse(version).map_or_else(|| version.to_owned(), |version| version.key())
}

impl ProjectFile {
    /// Converts a file's record. `yanked` is the reason of the yank if the version was yanked.
    pub(crate) fn of(filename: String, record: FileRecord, yanked: Option<String>) -> Self {
        // The index does not announce the metadata of a source distribution. Only static fields of
        // PKG-INFO are reliable, few sources have them, and installers build the source anyway.
        let wheel = filename.ends_with(".whl");
        Self {
            metadata: match record.metadata().filter(|_| wheel) {
                Some(digest) => MetadataFile::Sha256(digest.hex().to_owned()),
                None => MetadataFile::Absent,
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
