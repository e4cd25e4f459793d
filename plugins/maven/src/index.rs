//! The documents that are made of what is stored: `maven-metadata.xml` of a folder, and the list of groups.

use crate::layout::{FilePath, Kind};
use crate::many_versions;
use crate::metadata::{Metadata, SnapshotFile, updated};
use crate::records::{self, PluginRecord};
use crate::snapshot::Newest;
use crate::version::{Version, is_snapshot};
use packhouse_sdk::{Entry, Error, Repository};

/// Records that are read at a time: those of most artifacts at once, and of one with many versions no more than shows that.
const PAGE: u32 = 100;

/// A document and when it last changed, in ms since 1970; 0 when that is not known.
pub(crate) struct Document {
    pub(crate) bytes: Vec<u8>,
    pub(crate) modified: u64,
}

/// A folder's `maven-metadata.xml`: the client's own bytes while they say the same as what is stored, else made anew. None
/// when there is nothing to say.
pub(crate) fn metadata(repository: &Repository, folder: &str) -> Result<Option<Document>, Error> {
    let mut facts = Facts::read(repository, folder)?;
    if let Some(snapshot) = Snapshot::of(folder) {
        facts.snapshot(repository, folder, &snapshot)?;
    }
    Ok(facts.document())
}

/// A folder that a snapshot's files may lie in.
struct Snapshot {
    group: String,
    artifact: String,
    version: String,
    /// The artifact's folder.
    folder: String,
}

impl Snapshot {
    fn of(folder: &str) -> Option<Self> {
        let (artifact_folder, version) =
            folder.rsplit_once('/').filter(|(_, version)| is_snapshot(version))?;
        let (group, artifact) = artifact_folder.rsplit_once('/')?;
        Some(Self {
            group: group.replace('/', "."),
            artifact: artifact.to_owned(),
            version: version.to_owned(),
            folder: artifact_folder.to_owned(),
        })
    }
}

/// What is known of a folder.
#[derive(Default)]
struct Facts {
    sent: Option<Vec<u8>>,
    stored: Metadata,
    modified: u64,
}

impl Facts {
    /// By one scan where there are few versions. They stand behind all else.
    fn read(repository: &Repository, folder: &str) -> Result<Self, Error> {
        let prefix = records::about(folder);
        let mut facts = Self::default();
        let mut versions = Vec::new();
        for entry in repository.scan(&prefix).page(PAGE) {
            let Entry { key, value, .. } = entry?;
            let name = key.get(prefix.len()..).unwrap_or_default();
            match name.split_once('/') {
                Some(("v", _)) if versions.len() == many_versions::MANY => {
                    let many = many_versions::read(repository, folder)?;
                    facts.modified = facts.modified.max(many.modified);
                    versions = many.versions;
                    break;
                }
                Some(("v", version)) => {
                    facts.modified = facts.modified.max(records::read_time(&value));
                    versions.push(Version::new(version));
                }
                Some(("p", artifact)) => {
                    let record: PluginRecord = serde_json::from_slice(&value)?;
                    facts.stored.plugins.push(record.into_plugin(artifact));
                }
                None if name == "m" => facts.sent = Some(value),
                None if name == "t" => facts.modified = facts.modified.max(records::read_time(&value)),
                _ => {}
            }
        }
        facts.list(folder, versions);
        Ok(facts)
    }

    fn list(&mut self, folder: &str, mut versions: Vec<Version>) {
        let Some((group, artifact)) = folder.rsplit_once('/').filter(|_| !versions.is_empty()) else {
            return;
        };
        versions.sort_unstable();
        let mut releases = versions.iter().filter(|version| !version.is_snapshot());
        self.stored.release = releases.next_back().cloned().map(Version::into_text);
        self.stored.latest = versions.last().cloned().map(Version::into_text);
        self.stored.versions = versions.into_iter().map(Version::into_text).collect();
        self.stored.group = Some(group.replace('/', "."));
        self.stored.artifact = Some(artifact.to_owned());
        self.stored.updated = Some(updated(self.modified));
    }

    /// A snapshot's own: which build is the newest, of each file.
    fn snapshot(&mut self, repository: &Repository, folder: &str, snapshot: &Snapshot) -> Result<(), Error> {
        let marker = format!("{}{}", records::versions(&snapshot.folder), snapshot.version);
        let Some(marker) = repository.get(&marker)? else { return Ok(()) };
        let base = snapshot.version.strip_suffix("SNAPSHOT").unwrap_or_default();
        let newest = newest(repository, folder)?;
        self.modified = self.modified.max(records::read_time(&marker.value));
        let stored = &mut self.stored;
        stored.group = Some(snapshot.group.clone());
        stored.artifact = Some(snapshot.artifact.clone());
        stored.version = Some(snapshot.version.clone());
        stored.updated = Some(updated(self.modified));
        stored.timestamp = newest.build().map(|build| build.timestamp.clone());
        stored.build = newest.build().map(|build| build.number.to_string());
        stored.files = newest
            .files()
            .map(|(classifier, extension, build)| SnapshotFile {
                classifier: classifier.to_owned(),
                extension: extension.to_owned(),
                value: format!("{base}{}", build.qualifier()),
                updated: build.updated(),
            })
            .collect();
        Ok(())
    }

    fn document(self) -> Option<Document> {
        if self.stored == Metadata::default() {
            return None;
        }
        let sent =
            self.sent.filter(|bytes| Metadata::read(bytes).is_ok_and(|sent| sent.agrees_with(&self.stored)));
        let bytes = sent.unwrap_or_else(|| self.stored.write().into_bytes());
        Some(Document { bytes, modified: self.modified })
    }
}

/// The newest build of each file in a snapshot's folder.
pub(crate) fn newest(repository: &Repository, folder: &str) -> Result<Newest, Error> {
    let prefix = records::files_in(folder);
    let mut newest = Newest::default();
    for key in repository.keys(prefix) {
        let key = key?;
        let file = FilePath::stored(key.get(2..).unwrap_or_default());
        if let Some(item) = file.item.filter(|item| item.version_folder() == folder)
            && let Kind::Unique(build) = item.kind
        {
            newest.add(&item.tail, build);
        }
    }
    Ok(newest)
}

/// `.meta/prefixes.txt`: where groups begin. Only their first folder is told: clients keep the list for a day and ask for
/// nothing outside of it, so that a finer one would hide what is published meanwhile.
pub(crate) fn prefixes(repository: &Repository) -> Result<Option<Document>, Error> {
    let mut text = "## repository-prefixes/2.0\n".to_owned();
    let head = text.len();
    for key in repository.keys("f/").delimiter("/") {
        let key = key?;
        let name = key.strip_prefix("f/").and_then(|name| name.strip_suffix('/')).unwrap_or_default();
        if !name.is_empty() && !name.starts_with('.') {
            text.push_str(&format!("/{name}\n"));
        }
    }
    Ok((text.len() > head).then(|| Document { bytes: text.into_bytes(), modified: 0 }))
}
