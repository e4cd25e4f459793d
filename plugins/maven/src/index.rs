//! Documents that are generated from records: the `maven-metadata.xml` of a folder, and the list of
//! groups.

use crate::layout::{FileKind, FilePath};
use crate::many_versions;
use crate::metadata::{MavenMetadata, SnapshotFile, updated};
use crate::records::{self, PluginRecord};
use crate::snapshot::NewestBuilds;
use crate::version::{MavenVersion, is_snapshot};
use packhouse_sdk::{Entry, Error, Repository};

/// Number of records that a scan reads in one page. The records of most artifacts fit into one
/// page. If an artifact has more than [`many_versions::MANY`] versions, the first page already
/// shows it.
const PAGE: u32 = 100;

/// A document with the time of its last change, in ms since 1970 (0 if unknown).
pub(crate) struct IndexDocument {
    pub(crate) bytes: Vec<u8>,
    pub(crate) modified: u64,
}

/// A folder's `maven-metadata.xml`. A client's document is served as long as it agrees with the
/// stored files; otherwise the document is generated. `None` if the folder has no metadata.
pub(crate) fn metadata(repository: &Repository, folder: &str) -> Result<Option<IndexDocument>, Error> {
    let mut content = FolderContent::read(repository, folder)?;
    if let Some(snapshot) = SnapshotFolder::of(folder) {
        content.snapshot(repository, folder, &snapshot)?;
    }
    Ok(content.document())
}

/// A folder that may contain the files of a snapshot.
struct SnapshotFolder {
    group: String,
    artifact: String,
    version: String,
    /// The artifact's folder.
    folder: String,
}

impl SnapshotFolder {
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

/// The content of the records about a folder.
#[derive(Default)]
struct FolderContent {
    uploaded: Option<Vec<u8>>,
    stored: MavenMetadata,
    modified: u64,
}

impl FolderContent {
    /// Reads the records. One scan is enough if there are few versions. If there are many versions,
    /// the scan stops early, because version records come last.
    fn read(repository: &Repository, folder: &str) -> Result<Self, Error> {
        let prefix = records::about(folder);
        let mut content = Self::default();
        let mut versions = Vec::new();
        for entry in repository.scan(&prefix).page(PAGE) {
            let Entry { key, value, .. } = entry?;
            let name = key.get(prefix.len()..).unwrap_or_default();
            match name.split_once('/') {
                Some(("v", _)) if versions.len() == many_versions::MANY => {
                    let many = many_versions::read(repository, folder)?;
                    content.modified = content.modified.max(many.modified);
                    versions = many.versions;
                    break;
                }
                Some(("v", version)) => {
                    content.modified = content.modified.max(records::read_time(&value));
                    versions.push(MavenVersion::new(version));
                }
                Some(("p", artifact)) => {
                    let record: PluginRecord = serde_json::from_slice(&value)?;
                    content.stored.plugins.push(record.into_plugin(artifact));
                }
                None if name == "m" => content.uploaded = Some(value),
                None if name == "t" => content.modified = content.modified.max(records::read_time(&value)),
                _ => {}
            }
        }
        content.list(folder, versions);
        Ok(content)
    }

    fn list(&mut self, folder: &str, mut versions: Vec<MavenVersion>) {
        let Some((group, artifact)) = folder.rsplit_once('/').filter(|_| !versions.is_empty()) else {
            return;
        };
        versions.sort_unstable();
        let mut releases = versions.iter().filter(|version| !version.is_snapshot());
        self.stored.release = releases.next_back().cloned().map(MavenVersion::into_text);
        self.stored.latest = versions.last().cloned().map(MavenVersion::into_text);
        self.stored.versions = versions.into_iter().map(MavenVersion::into_text).collect();
        self.stored.group = Some(group.replace('/', "."));
        self.stored.artifact = Some(artifact.to_owned());
        self.stored.updated = Some(updated(self.modified));
    }

    /// Adds the content of a snapshot: the newest build of each file.
    fn snapshot(
        &mut self,
        repository: &Repository,
        folder: &str,
        snapshot: &SnapshotFolder,
    ) -> Result<(), Error> {
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

    fn document(self) -> Option<IndexDocument> {
        if self.stored == MavenMetadata::default() {
            return None;
        }
        let uploaded = self.uploaded.filter(|bytes| {
            MavenMetadata::read(bytes).is_ok_and(|uploaded| uploaded.agrees_with(&self.stored))
        });
        let bytes = uploaded.unwrap_or_else(|| self.stored.write().into_bytes());
        Some(IndexDocument { bytes, modified: self.modified })
    }
}

/// The newest build of each file in a snapshot's folder.
pub(crate) fn newest(repository: &Repository, folder: &str) -> Result<NewestBuilds, Error> {
    let prefix = records::files_in(folder);
    let mut newest = NewestBuilds::default();
    for key in repository.keys(prefix) {
        let key = key?;
        let file = FilePath::stored(key.get(2..).unwrap_or_default());
        if let Some(item) = file.item.filter(|item| item.version_folder() == folder)
            && let FileKind::Unique(build) = item.kind
        {
            newest.add(&item.tail, build);
        }
    }
    Ok(newest)
}

/// `.meta/prefixes.txt`: the first folders of all groups. Deeper folders are not listed. Clients
/// keep the list for a day and request nothing outside of it. A list with deeper folders would
/// therefore hide groups that are published meanwhile.
pub(crate) fn prefixes(repository: &Repository) -> Result<Option<IndexDocument>, Error> {
    let mut text = "## repository-prefixes/2.0\n".to_owned();
    let head = text.len();
    for key in repository.keys("f/").delimiter("/") {
        let key = key?;
        let name = key.strip_prefix("f/").and_then(|name| name.strip_suffix('/')).unwrap_or_default();
        if !name.is_empty() && !name.starts_with('.') {
            text.push_str(&format!("/{name}\n"));
        }
    }
    Ok((text.len() > head).then(|| IndexDocument { bytes: text.into_bytes(), modified: 0 }))
}
