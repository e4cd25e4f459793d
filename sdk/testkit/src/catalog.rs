//! What is shown of a repository: versions, and the search among them.

use crate::state::RepositoryState;
use packhouse_sdk::{Matches, Statement, Version, VersionDocument, VersionId};
use std::collections::BTreeMap;

/// A page of a search is no longer than this.
const PAGE: usize = 250;
/// Statements of one version that are kept, and documents.
const MAX_STATEMENTS: usize = 64;

/// A change to what is shown.
pub(crate) enum CatalogChange {
    Show(Version),
    Hide(VersionId),
    HideFile(VersionId, String),
    Attest(Statement),
    Document(VersionDocument),
}

impl RepositoryState {
    /// Changes what is shown.
    pub(crate) fn apply(&mut self, change: CatalogChange, now: u64) {
        match change {
            CatalogChange::Show(version) => self.show(version, now),
            CatalogChange::Hide(id) => {
                self.statements.retain(|one| one.id != id);
                self.documents.retain(|one| one.id != id);
                self.shown.remove(&(id.name, id.version));
            }
            CatalogChange::HideFile(id, path) => self.hide_file(id, &path),
            CatalogChange::Attest(statement) => self.attest(statement),
            CatalogChange::Document(document) => self.document(document),
        }
    }

    fn show(&mut self, mut version: Version, now: u64) {
        let key = (version.name.clone(), version.version.clone());
        let before = self.shown.remove(&key).unwrap_or_default();
        version.published = version.published.or(before.published).or(Some(now));
        let stay =
            before.files.into_iter().filter(|file| version.files.iter().all(|new| new.path != file.path));
        let stay: Vec<_> = stay.collect();
        version.files.extend(stay);
        version.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.shown.insert(key, version);
    }

    /// About what is shown, and each once.
    fn attest(&mut self, statement: Statement) {
        let shown = self.shown.contains_key(&(statement.id.name.clone(), statement.id.version.clone()));
        let of_version = self.statements.iter().filter(|one| one.id == statement.id).count();
        if shown && of_version < MAX_STATEMENTS && !self.statements.contains(&statement) {
            self.statements.push(statement);
        }
    }

    /// Of what is shown; the last in one place.
    fn document(&mut self, document: VersionDocument) {
        let VersionDocument { id, path, source, title, .. } = &document;
        if !self.shown.contains_key(&(id.name.clone(), id.version.clone())) {
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
        let Some(version) = self.shown.get_mut(&key) else { return };
        version.files.retain(|file| file.path != path);
        if version.files.is_empty() {
            self.shown.remove(&key);
        }
    }

    /// Packages whose name, summary or property `keywords` holds every word. What matches by its name comes first.
    pub(crate) fn search(&self, text: &str, offset: u32, limit: u32) -> Matches {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let mut found: BTreeMap<&str, bool> = BTreeMap::new();
        for version in self.shown.values() {
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
