//! Listed versions of a repository, and the search in them.

use crate::state::RepositoryState;
use packhouse_sdk::{Matches, Statement, Version, VersionDocument, VersionId};
use std::collections::BTreeMap;

/// Largest number of names on a page of search results.
const PAGE: usize = 250;
/// Largest number of statements of one version, and of documents.
const MAX_STATEMENTS: usize = 64;

/// Change to the listed versions.
pub(crate) enum CatalogChange {
    Show(Version),
    Hide(VersionId),
    HideFile(VersionId, String),
    Attest(Statement),
    Document(VersionDocument),
}

impl RepositoryState {
    /// Applies a change to the listed versions.
    pub(crate) fn apply(&mut self, change: CatalogChange, now: u64) {
        match change {
            CatalogChange::Show(version) => self.show(version, now),
            CatalogChange::Hide(id) => {
                self.statements.retain(|one| one.id != id);
                self.documents.retain(|one| one.id != id);
                self.listed.remove(&(id.name, id.version));
            }
            CatalogChange::HideFile(id, path) => self.hide_file(id, &path),
            CatalogChange::Attest(statement) => self.attest(statement),
            CatalogChange::Document(document) => self.document(document),
        }
    }

    fn show(&mut self, mut version: Version, now: u64) {
        let key = (version.name.clone(), version.version.clone());
        let before = self.listed.remove(&key).unwrap_or_default();
        version.published = version.published.or(before.published).or(Some(now));
        let stay =
            before.files.into_iter().filter(|file| version.files.iter().all(|new| new.path != file.path));
        let stay: Vec<_> = stay.collect();
        version.files.extend(stay);
        version.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.listed.insert(key, version);
    }

    /// Stores a statement about a listed version, unless it is a duplicate.
    fn attest(&mut self, statement: Statement) {
        let is_listed = self.listed.contains_key(&(statement.id.name.clone(), statement.id.version.clone()));
        let of_version = self.statements.iter().filter(|one| one.id == statement.id).count();
        if is_listed && of_version < MAX_STATEMENTS && !self.statements.contains(&statement) {
            self.statements.push(statement);
        }
    }

    /// Attaches a document to a listed version. Replaces an earlier document of the same version,
    /// path, source and title.
    fn document(&mut self, document: VersionDocument) {
        let VersionDocument { id, path, source, title, .. } = &document;
        if !self.listed.contains_key(&(id.name.clone(), id.version.clone())) {
            return;
        }
        let here = |one: &VersionDocument| {
            (&one.id, &one.path, &one.source, &one.title) == (id, path, source, title)
        };
        self.documents.retain(|one| !here(one));
        if self.documents.iter().filter(|one| one.id == *id).count() < MAX_STATEMENTS {
            self.documents.push(document);
        }
    }

    fn hide_file(&mut self, id: VersionId, path: &str) {
        self.statements.retain(|one| one.id != id || (one.path != path && one.source != path));
        self.documents.retain(|one| one.id != id || (one.path != path && one.source != path));
        let key = (id.name, id.version);
        let Some(version) = self.listed.get_mut(&key) else { return };
        version.files.retain(|file| file.path != path);
        if version.files.is_empty() {
            self.listed.remove(&key);
        }
    }

    /// Finds packages whose name, summary or property `keywords` contains every word. Matches by
    /// name come first.
    pub(crate) fn search(&self, text: &str, offset: u32, limit: u32) -> Matches {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let mut found: BTreeMap<&str, bool> = BTreeMap::new();
        for version in self.listed.values() {
            let keywords = version.properties.iter().filter(|(name, _)| name == "keywords");
            let rest = keywords.fold(version.summary.clone(), |rest, (_, words)| rest + " " + words);
            let (name, rest) = (version.name.to_lowercase(), rest.to_lowercase());
            if words.iter().all(|word| name.contains(word) || rest.contains(word)) {
                let by_summary = !words.iter().all(|word| name.contains(word));
                let weakest = found.entry(&version.name).or_insert(by_summary);
                *weakest &= by_summary;
            }
        }
        let total = found.len() as u64;
        let mut ranked: Vec<_> = found.into_iter().map(|(name, by_summary)| (by_summary, name)).collect();
        ranked.sort_unstable();
        let page = ranked.into_iter().skip(offset as usize).take((limit as usize).min(PAGE));
        Matches { names: page.map(|(_, name)| name.to_owned()).collect(), total }
    }
}
