//! What a repository knows of a project, as every view of it is rendered from.

use crate::proxy;
use crate::records::{self, FileRecord, ProjectRecord, VersionRecord, Yanked};
use crate::status::Status;
use crate::version::Version;
use packhouse_sdk::{Context, Error, Failure, Repository, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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

/// A file of it; as a proxy remembers it, too.
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
    /// What is stored of it, where it is.
    #[serde(skip)]
    pub(crate) record: Option<FileRecord>,
}

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
    /// Whether there is one of this normalised name, and what is known of it.
    pub(crate) fn read(cx: &Context, name: &str) -> Result<Option<Self>, Failure> {
        let mut found: Option<Self> = None;
        for repository in cx.sources()? {
            let Some(project) = Self::of(cx, repository, name)? else { continue };
            match &mut found {
                Some(found) => found.join(project),
                None => found = Some(project),
            }
        }
        Ok(found)
    }

    fn of(cx: &Context, repository: &Repository, name: &str) -> Result<Option<Self>, Failure> {
        if repository.is_proxy() { proxy::project(cx, repository, name) } else { hosted(repository, name) }
    }

    /// Adds what another repository has; of two files of one name the first stands.
    fn join(&mut self, other: Self) {
        let names: BTreeSet<String> = self.files.iter().map(|file| file.filename.clone()).collect();
        self.files.extend(other.files.into_iter().filter(|file| !names.contains(&file.filename)));
        let known: BTreeSet<String> = self.versions.iter().map(|version| key_of(version)).collect();
        self.versions.extend(other.versions.into_iter().filter(|version| !known.contains(&key_of(version))));
        self.sort();
    }

    /// Puts versions and files in their order.
    pub(crate) fn sort(&mut self) {
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

/// Names of all projects, in the order of their bytes. A proxy's are those of which it has a file and that it may serve.
pub(crate) fn names(cx: &Context) -> Result<Vec<String>, Failure> {
    let mut names = BTreeSet::new();
    for repository in cx.sources()? {
        let is_proxy = repository.is_proxy();
        let prefix = if is_proxy { "f/" } else { "p/" };
        let keys = repository.keys(prefix).delimiter("/");
        let name = |key: String| key.get(prefix.len()..).unwrap_or_default().trim_end_matches('/').to_owned();
        let mut own = keys.map(|key| key.map(name)).collect::<Result<Vec<String>, Error>>()?;
        if is_proxy {
            let withheld = repository.withheld(&own)?;
            own.retain(|name| !withheld.contains(name));
        }
        names.extend(own);
    }
    Ok(names.into_iter().collect())
}

impl File {
    fn of(filename: String, record: FileRecord, yanked: Option<String>) -> Self {
        // Of a source, only what its PKG-INFO says unchangeably could be announced; few do, and installers build it anyway.
        let wheel = filename.ends_with(".whl");
        Self {
            metadata: if wheel {
                Metadata::Sha256(record.metadata.hex().to_owned())
            } else {
                Metadata::Absent
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
            record: Some(record),
        }
    }
}
