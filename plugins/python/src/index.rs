//! What a repository knows of a project, as every view of it is rendered from.

use crate::records::{self, FileRecord, ProjectRecord, VersionRecord, Yanked};
use crate::status::Status;
use crate::version::Version;
use packhouse_sdk::{Context, Error, Failure, Repository};
use std::collections::BTreeMap;

/// A project.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    /// Normalised.
    pub(crate) name: String,
    /// Its own spelling.
    pub(crate) display: String,
    pub(crate) status: Status,
    /// Normalised, the lowest first.
    pub(crate) versions: Vec<String>,
    /// By version, then by name.
    pub(crate) files: Vec<File>,
}

/// A file of it.
#[derive(Clone, Debug, Default)]
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
    /// What is stored of it, where it is.
    pub(crate) record: Option<FileRecord>,
}

/// Whether a file's metadata can be had without the file (PEP 658).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Metadata {
    #[default]
    Absent,
    /// Without a digest to check them by.
    Unchecked,
    /// With their SHA-256 in hex.
    Sha256(String),
}

impl Project {
    /// Whether there is one of this normalised name, and what is known of it.
    pub(crate) fn read(cx: &Context, name: &str) -> Result<Option<Self>, Failure> {
        hosted(cx.target()?, name)
    }

    /// Puts versions and files in their order.
    fn sort(&mut self) {
        self.versions.sort_by_cached_key(|version| (Version::parse(version), version.clone()));
        self.files.sort_by_cached_key(|file| (Version::parse(&file.version), file.filename.clone()));
    }
}

fn hosted(repository: &Repository, name: &str) -> Result<Option<Project>, Failure> {
    let Some(record) = repository.get_json::<ProjectRecord>(&records::project(name))? else {
        return Ok(None);
    };
    let versions = repository.scan(records::versions(name));
    let versions = versions.map(|entry| Ok(entry?.json::<VersionRecord>()?.value.version));
    let yanked = yanked(repository, name)?;
    let prefix = records::files(name);
    let mut files = Vec::new();
    for entry in repository.scan(&prefix) {
        let entry = entry?;
        let filename = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        let record = entry.json::<FileRecord>()?.value;
        let reason = yanked.get(&key_of(&record.version)).cloned();
        files.push(File::of(filename, record, reason));
    }
    let mut project = Project {
        name: name.to_owned(),
        display: record.value.name,
        status: repository.get_json(&records::status(name))?.map(|entry| entry.value).unwrap_or_default(),
        versions: versions.collect::<Result<_, Error>>()?,
        files,
    };
    project.sort();
    Ok(Some(project))
}

/// Reasons by the key of the version.
fn yanked(repository: &Repository, name: &str) -> Result<BTreeMap<String, String>, Error> {
    let prefix = records::all_yanked(name);
    let mut yanked = BTreeMap::new();
    for entry in repository.scan(&prefix) {
        let entry = entry?;
        let key = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        yanked.insert(key, entry.json::<Yanked>()?.value.reason);
    }
    Ok(yanked)
}

/// The key of a version that is written in any way.
pub(crate) fn key_of(version: &str) -> String {
    Version::parse(version).map_or_else(|| version.to_owned(), |version| version.key())
}

/// Names of all projects, in the order of their bytes.
pub(crate) fn names(cx: &Context) -> Result<Vec<String>, Failure> {
    let keys = cx.target()?.keys("p/");
    let names = keys.map(|key| key.map(|key| key.get(2..).unwrap_or_default().to_owned()));
    Ok(names.collect::<Result<_, Error>>()?)
}

impl File {
    fn of(filename: String, record: FileRecord, yanked: Option<String>) -> Self {
        // Of a source, only what its PKG-INFO says unchangeably could be announced; few do, and installers build it anyway.
        let wheel = filename.ends_with(".whl");
        Self {
            metadata: match wheel {
                true => Metadata::Sha256(record.metadata.hex().to_owned()),
                false => Metadata::Absent,
            },
            filename,
            version: record.version.clone(),
            hashes: BTreeMap::from([("sha256".to_owned(), record.sha256.hex().to_owned())]),
            size: Some(record.size),
            time: Some(crate::date::rfc3339(record.time)),
            requires_python: record.requires_python.clone(),
            yanked,
            signature: record.signature.is_some(),
            provenance: record.provenance.is_some(),
            record: Some(record),
        }
    }
}
