//! Writes of the catalog. A few statements write all changes of a batch, with the same result as if
//! each change were written by itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::attestations::rows::{self, OF_FILES};
use crate::attestations::statement::SignedStatement;
use crate::catalog::{CatalogChange, Version, VersionFile};
use crate::db::{MultiRow, Value, signed};
use crate::digest::{Digest, Sha256};
use crate::documents::document::VersionDocument;
use crate::documents::rows::{self as documents, OF_FILES as DOCUMENTS_OF};
use crate::error::StoreError;
use crate::ids::{RepositoryId, new_id, now_ms};

/// Property of a version whose words are searched in addition to its name and summary.
const KEYWORDS: &str = "keywords";

/// A version: repository, package, version.
type VersionKey<'a> = (RepositoryId, &'a str, &'a str);

/// Changes that can be written together, in this order: additions, their statements and documents,
/// hidden files, hidden versions.
#[derive(Default)]
pub(super) struct CatalogPhase<'a> {
    /// For each package the version that was added last.
    packages: BTreeMap<(RepositoryId, &'a str), &'a Version>,
    versions: BTreeMap<VersionKey<'a>, &'a Version>,
    files: BTreeMap<(VersionKey<'a>, &'a str), (&'a Digest, u64)>,
    /// Versions of which only files are added.
    touched: BTreeSet<VersionKey<'a>>,
    published: BTreeMap<VersionKey<'a>, u64>,
    statements: Vec<(RepositoryId, &'a SignedStatement)>,
    documents: Vec<(RepositoryId, &'a VersionDocument)>,
    hidden_files: BTreeSet<(VersionKey<'a>, &'a str)>,
    hidden: BTreeSet<VersionKey<'a>>,
    by: HashMap<VersionKey<'a>, &'a str>,
}

impl<'a> CatalogPhase<'a> {
    /// Splits changes into phases that preserve the order of changes of one package. One phase is
    /// usually enough.
    pub(super) fn phases(changes: &[(RepositoryId, &'a CatalogChange, &'a str)]) -> Vec<CatalogPhase<'a>> {
        let mut phases: Vec<CatalogPhase<'a>> = Vec::new();
        let mut last: HashMap<(RepositoryId, &str), (usize, u8)> = HashMap::new();
        for (repository, change, by) in changes {
            let (name, rank) = name_and_rank(change);
            let (phase, before) = last.get(&(*repository, name)).copied().unwrap_or((0, 0));
            let phase = if before <= rank { phase } else { phase + 1 };
            last.insert((*repository, name), (phase, rank));
            if phases.len() <= phase {
                phases.push(CatalogPhase::default());
            }
            if let Some(phase) = phases.get_mut(phase) {
                phase.add(*repository, change, by);
            }
        }
        phases
    }

    fn add(&mut self, repository: RepositoryId, change: &'a CatalogChange, by: &'a str) {
        match change {
            CatalogChange::Show(version) => {
                self.by.entry((repository, &version.name, &version.version)).or_insert(by);
                self.show(repository, version);
            }
            CatalogChange::ShowFile(file) => {
                let key = (repository, file.name.as_str(), file.version.as_str());
                self.touched.insert(key);
                self.files.insert((key, &file.path), (&file.digest, file.size));
            }
            CatalogChange::Attest(statement) => self.statements.push((repository, statement)),
            CatalogChange::Document(document) => self.documents.push((repository, document)),
            CatalogChange::Hide { name, version } => {
                self.hidden.insert((repository, name, version));
            }
            CatalogChange::HideFile { name, version, path } => {
                self.hidden_files.insert(((repository, name, version), path));
            }
        }
    }

    fn show(&mut self, repository: RepositoryId, version: &'a Version) {
        let key = (repository, version.name.as_str(), version.version.as_str());
        self.packages.insert((repository, &version.name), version);
        self.versions.insert(key, version);
        if let Some(published) = version.published {
            self.published.insert(key, published);
        }
        let file = |file: &'a VersionFile| ((key, file.path.as_str()), (&file.digest, file.size));
        self.files.extend(version.files.iter().map(file));
    }

    /// Statements for the changes; `blobs` maps bytes to their rows.
    pub(super) fn changes(self, blobs: &HashMap<Sha256, i64>) -> Result<Vec<MultiRow>, StoreError> {
        let [new_packages, new_versions] = self.touched();
        let mut changes =
            vec![self.packages(), self.versions()?, new_packages, new_versions, self.files(blobs)];
        changes.push(rows::insert(self.statements.iter().copied()));
        changes.push(documents::insert(self.documents.iter().copied()));
        changes.extend(self.hidden().map(MultiRow::later));
        Ok(changes)
    }

    fn packages(&self) -> MultiRow {
        let now = now_ms();
        let row = |((repository, name), version): (&(RepositoryId, &'a str), &&'a Version)| {
            [Value::from(repository.0), Value::from(*name), Value::from(search(version)), Value::from(now)]
        };
        let before = "INSERT INTO packages (repository, name, search, updated_at) VALUES ";
        let after = " ON CONFLICT (repository, name) DO UPDATE SET search = excluded.search, \
                     updated_at = excluded.updated_at";
        MultiRow::new(before, self.packages.iter().map(row).collect(), after)
    }

    fn versions(&self) -> Result<MultiRow, StoreError> {
        let now = now_ms();
        let row = |(key, version): (&VersionKey<'a>, &&'a Version)| -> Result<[Value; 11], StoreError> {
            let [repository, name, number] = key_values(*key);
            let published = Value::from(self.published.get(key).map(|at| signed(*at)));
            let properties = serde_json::to_string(&version.properties)
                .map_err(|problem| StoreError::Invalid(format!("properties of a version: {problem}")))?;
            let texts =
                [version.summary.as_str(), &search(version), &properties, &version.state].map(Value::from);
            let [summary, search, properties, state] = texts;
            let times = [Value::from(now), Value::from(now)];
            let [shown_at, updated_at] = times;
            let by = Value::from(self.by.get(key).copied().unwrap_or_default());
            Ok([
                repository, name, number, published, summary, search, properties, state, shown_at,
                updated_at, by,
            ])
        };
        let rows = self.versions.iter().map(row).collect::<Result<_, _>>()?;
        let before = "INSERT INTO versions (repository, name, version, published, summary, search, properties, state, \
                      shown_at, updated_at, published_by) VALUES ";
        // The update does not set the publisher: it stays the member who first added the version.
        let after = " ON CONFLICT (repository, name, version) DO UPDATE SET \
                     published = COALESCE(excluded.published, versions.published), summary = excluded.summary, \
                     search = excluded.search, properties = excluded.properties, state = excluded.state, \
                     updated_at = excluded.updated_at";
        Ok(MultiRow::new(before, rows, after))
    }

    /// Statements that insert the packages and versions of added files if they are missing.
    fn touched(&self) -> [MultiRow; 2] {
        let now = now_ms();
        let packages: BTreeSet<(RepositoryId, &str)> =
            self.touched.iter().map(|(repository, name, _)| (*repository, *name)).collect();
        let package = |(repository, name): &(RepositoryId, &str)| {
            let search = format!("{name}\n").to_lowercase();
            [Value::from(repository.0), Value::from(*name), Value::from(search), Value::from(now)]
        };
        let version = |key: &VersionKey<'a>| {
            let [repository, name, version] = key_values(*key);
            let search = Value::from(format!("{}\n", key.1).to_lowercase());
            let [summary, properties, state] = ["", "[]", ""].map(Value::from);
            [
                repository,
                name,
                version,
                summary,
                search,
                properties,
                state,
                Value::from(now),
                Value::from(now),
            ]
        };
        let into_packages = "INSERT INTO packages (repository, name, search, updated_at) VALUES ";
        let into_versions = "INSERT INTO versions (repository, name, version, summary, search, properties, state, \
                             shown_at, updated_at) VALUES ";
        [
            MultiRow::new(into_packages, packages.iter().map(package).collect(), " ON CONFLICT DO NOTHING")
                .later(),
            MultiRow::new(
                into_versions,
                self.touched.iter().map(version).collect(),
                " ON CONFLICT DO NOTHING",
            ),
        ]
    }

    fn files(&self, blobs: &HashMap<Sha256, i64>) -> MultiRow {
        let row = |((key, path), (digest, size)): (&(VersionKey<'a>, &'a str), &(&'a Digest, u64))| {
            let [repository, name, version] = key_values(*key);
            let blob = digest.sha256().and_then(|sha256| blobs.get(&sha256).copied());
            let (digest, size) = (Value::from(digest.to_string()), Value::from(signed(*size)));
            [repository, name, version, Value::from(*path), digest, size, Value::from(blob)]
        };
        let before = "INSERT INTO files (repository, name, version, path, digest, size, blob) VALUES ";
        let after = " ON CONFLICT (repository, name, version, path) DO UPDATE SET digest = excluded.digest, \
                     size = excluded.size, blob = excluded.blob";
        MultiRow::new(before, self.files.iter().map(row).collect(), after)
    }

    fn hidden(&self) -> [MultiRow; 7] {
        let file = |(key, path): &(VersionKey<'a>, &'a str)| {
            let [repository, name, version] = key_values(*key);
            [repository, name, version, Value::from(*path)]
        };
        let emptied: BTreeSet<VersionKey<'a>> = self.hidden_files.iter().map(|(key, _)| *key).collect();
        let touched: BTreeSet<(RepositoryId, &str)> =
            emptied.iter().chain(&self.hidden).map(|(repository, name, _)| (*repository, *name)).collect();
        let [packages, found] = packages_without(&touched);
        [
            MultiRow::new(OF_FILES[0], self.hidden_files.iter().map(file).collect(), OF_FILES[1]),
            MultiRow::new(DOCUMENTS_OF[0], self.hidden_files.iter().map(file).collect(), DOCUMENTS_OF[1]),
            MultiRow::new(FILES_GONE[0], self.hidden_files.iter().map(file).collect(), FILES_GONE[1]),
            MultiRow::new(EMPTIED[0], emptied.iter().map(|key| key_values(*key)).collect(), EMPTIED[1]),
            // Foreign keys delete the files with their version.
            MultiRow::new(
                VERSIONS_GONE[0],
                self.hidden.iter().map(|key| key_values(*key)).collect(),
                VERSIONS_GONE[1],
            ),
            packages,
            found,
        ]
    }
}

pub(crate) const FILES_GONE: [&str; 2] =
    ["DELETE FROM files WHERE (repository, name, version, path) IN (VALUES ", ")"];
pub(crate) const VERSIONS_GONE: [&str; 2] =
    ["DELETE FROM versions WHERE (repository, name, version) IN (VALUES ", ")"];
/// Deletes versions that have no files left.
pub(crate) const EMPTIED: [&str; 2] = [
    VERSIONS_GONE[0],
    ") AND NOT EXISTS (SELECT 1 FROM files f WHERE f.repository = versions.repository \
      AND f.name = versions.name AND f.version = versions.version)",
];
pub(crate) const PACKAGES_GONE: [&str; 2] = [
    "DELETE FROM packages WHERE (repository, name) IN (VALUES ",
    ") AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.repository = packages.repository \
      AND v.name = packages.name)",
];
pub(crate) const FOUND_BY: [&str; 2] = [
    "UPDATE packages SET search = (SELECT v.search FROM versions v \
     WHERE v.repository = packages.repository AND v.name = packages.name \
     ORDER BY v.updated_at DESC, v.version DESC LIMIT 1) WHERE (repository, name) IN (VALUES ",
    ")",
];

/// Statements that delete packages without versions. They set the search text of the other packages
/// to that of the version added last.
fn packages_without(touched: &BTreeSet<(RepositoryId, &str)>) -> [MultiRow; 2] {
    let rows =
        || touched.iter().map(|(repository, name)| [Value::from(repository.0), Value::from(*name)]).collect();
    [
        MultiRow::new(PACKAGES_GONE[0], rows(), PACKAGES_GONE[1]),
        MultiRow::new(FOUND_BY[0], rows(), FOUND_BY[1]),
    ]
}

/// Queues changed packages for the search index, each once.
pub(super) fn queued(changes: &[(RepositoryId, &CatalogChange, &str)]) -> MultiRow {
    let packages: BTreeSet<(RepositoryId, &str)> =
        changes.iter().map(|(repository, change, _)| (*repository, change.package())).collect();
    let row = |(repository, name): &(RepositoryId, &str)| {
        [Value::from(new_id()), Value::from(repository.0), Value::from(*name)]
    };
    let before = "INSERT INTO search_queue (id, repository, name) VALUES ";
    MultiRow::new(before, packages.iter().map(row).collect(), "")
}

fn name_and_rank(change: &CatalogChange) -> (&str, u8) {
    match change {
        CatalogChange::Show(version) => (&version.name, 0),
        CatalogChange::ShowFile(file) => (&file.name, 0),
        CatalogChange::Attest(statement) => (&statement.name, 1),
        CatalogChange::Document(document) => (&document.name, 1),
        CatalogChange::HideFile { name, .. } => (name, 2),
        CatalogChange::Hide { name, .. } => (name, 3),
    }
}

fn key_values((repository, name, version): VersionKey<'_>) -> [Value; 3] {
    [Value::from(repository.0), Value::from(name), Value::from(version)]
}

/// Search text: the name, then the summary and the property `keywords`, in lower case.
fn search(version: &Version) -> String {
    let keywords = version.properties.iter().filter(|(name, _)| name == KEYWORDS).map(|(_, value)| value);
    let words = keywords.fold(version.summary.clone(), |words, more| words + " " + more);
    format!("{}\n{words}", version.name).to_lowercase()
}
