//! Transactions of the memory host.

use crate::call::Rights;
use crate::catalog::CatalogChange;
use crate::state::{Record, RepositoryState};
use packhouse_sdk::host::HostTransaction;
use packhouse_sdk::{Digest, Error, Expectation, Outcome, Statement, Version, VersionDocument, VersionId};

const MAX_CHANGES: usize = 10_000;
const MAX_KEY: usize = 1_024;
const MAX_VALUE: usize = 1 << 20;
const MAX_VALUES: usize = 16 << 20;
const MAX_KIND: usize = 200;

/// Change of a key.
enum Change {
    Put { value: Vec<u8>, blobs: Vec<Digest> },
    Remove,
    Require,
}

/// Transaction that is being prepared.
pub(crate) struct MemoryTransaction {
    rights: Rights,
    repository: String,
    changes: Vec<(String, Expectation, Change)>,
    catalog: Vec<CatalogChange>,
    /// Packages that the change names. The memory host limits no credential to packages.
    about: Vec<String>,
}

impl MemoryTransaction {
    pub(crate) fn new(rights: Rights, repository: String) -> Self {
        Self { rights, repository, changes: Vec::new(), catalog: Vec::new(), about: Vec::new() }
    }

    /// Adds a change. A key has at most one change; a later change replaces the earlier one.
    fn change(&mut self, key: &str, expect: Expectation, change: Change) {
        self.changes.retain(|(earlier, ..)| earlier != key);
        self.changes.push((key.to_owned(), expect, change));
    }

    /// Checks the limits of a commit.
    fn check(&self) -> Result<(), Error> {
        let invalid = |text: String| Err(Error::Invalid(text));
        if self.changes.len() + self.catalog.len() + self.about.len() > MAX_CHANGES {
            return invalid(format!("more than {MAX_CHANGES} changes in one commit"));
        }
        let statements = self.catalog.iter().filter_map(|change| match change {
            CatalogChange::Attest(statement) => Some(statement),
            _ => None,
        });
        for statement in statements {
            if statement.kind.is_empty() || statement.kind.len() > MAX_KIND {
                return invalid(format!(
                    "the kind of a statement must have 1 to {MAX_KIND} bytes: {:?}",
                    statement.kind
                ));
            }
            if statement.bundle.len() > Statement::MAX_BYTES {
                return invalid(format!("a statement may have at most {} bytes", Statement::MAX_BYTES));
            }
            if !matches!(statement.subject.algorithm(), "sha256" | "sha512") {
                return invalid(format!(
                    "the subject of a statement must be a sha256 or sha512 digest, not {}",
                    statement.subject
                ));
            }
        }
        self.catalog.iter().try_for_each(|change| match change {
            CatalogChange::Document(document) => check_document(document),
            _ => Ok(()),
        })?;
        let mut values = 0;
        for (key, _, change) in &self.changes {
            if key.is_empty() || key.len() > MAX_KEY || key.contains('\0') {
                return invalid(format!("a key is 1 to {MAX_KEY} bytes without NUL: {key:?}"));
            }
            let Change::Put { value, blobs } = change else { continue };
            values += value.len();
            if value.len() > MAX_VALUE || values > MAX_VALUES {
                return invalid(format!("a value over 1 MiB, or more than 16 MiB in one commit: {key:?}"));
            }
            if let Some(digest) = blobs.iter().find(|digest| digest.algorithm() != "sha256") {
                return invalid(format!("a blob is named by its SHA-256: {digest}"));
            }
        }
        Ok(())
    }

    /// Returns the first key that does not meet its condition.
    fn stale(&self, repository: &RepositoryState) -> Option<String> {
        let wrong = self.changes.iter().find(|(key, expect, _)| {
            let revision = repository.records.get(key).map(|record| record.revision);
            match expect {
                Expectation::Anything => false,
                Expectation::Absent => revision.is_some(),
                Expectation::Present => revision.is_none(),
                Expectation::Revision(expected) => revision != Some(*expected),
            }
        });
        wrong.map(|(key, ..)| key.clone())
    }

    fn named(&self) -> impl Iterator<Item = &Digest> {
        self.changes.iter().flat_map(|(_, _, change)| match change {
            Change::Put { blobs, .. } => blobs.as_slice(),
            Change::Remove | Change::Require => &[],
        })
    }
}

fn check_document(document: &VersionDocument) -> Result<(), Error> {
    for text in [&document.form, &document.media_type] {
        if text.is_empty() || text.len() > MAX_KIND {
            let limit = format!(
                "the form and the media type of a document must have 1 to {MAX_KIND} bytes: {text:?}"
            );
            return Err(Error::Invalid(limit));
        }
    }
    if document.digest.algorithm() == "sha256" {
        Ok(())
    } else {
        Err(Error::Invalid(format!("a document is named by its SHA-256: {}", document.digest)))
    }
}

impl HostTransaction for MemoryTransaction {
    fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]) {
        self.change(key, expect, Change::Put { value: value.to_vec(), blobs: blobs.to_vec() });
    }

    fn remove(&mut self, key: &str, expect: Expectation) {
        self.change(key, expect, Change::Remove);
    }

    fn require(&mut self, key: &str, expect: Expectation) {
        self.change(key, expect, Change::Require);
    }

    fn show(&mut self, version: &Version) {
        self.catalog.push(CatalogChange::Show(version.clone()));
    }

    fn hide(&mut self, id: &VersionId) {
        self.catalog.push(CatalogChange::Hide(id.clone()));
    }

    fn hide_file(&mut self, id: &VersionId, path: &str) {
        self.catalog.push(CatalogChange::HideFile(id.clone(), path.to_owned()));
    }

    fn attest(&mut self, statement: &Statement) {
        self.catalog.push(CatalogChange::Attest(statement.clone()));
    }

    fn document(&mut self, document: &VersionDocument) {
        self.catalog.push(CatalogChange::Document(document.clone()));
    }

    fn about_package(&mut self, name: &str) {
        self.about.push(name.to_owned());
    }

    fn commit(self: Box<Self>) -> Result<Outcome, Error> {
        self.check()?;
        let mut state = self.rights.host.borrow_mut();
        let now = state.now;
        let repository = state.repositories.entry(self.repository.clone()).or_default();
        if let Some(key) = self.stale(repository) {
            return Ok(Outcome::Stale(key));
        }
        let mut unknown: Vec<Digest> = Vec::new();
        for digest in self.named() {
            let held = repository.holds(digest.as_str()) || self.rights.is_pending(&self.repository, digest);
            if !held && !unknown.contains(digest) {
                unknown.push(digest.clone());
            }
        }
        if !unknown.is_empty() {
            return Ok(Outcome::UnknownBlobs(unknown));
        }
        self.named().for_each(|digest| self.rights.hold(&self.repository, digest, repository));
        repository.revision += 1;
        let revision = repository.revision;
        for (key, _, change) in self.changes {
            match change {
                Change::Put { value, blobs } => {
                    let blobs = blobs.iter().map(Digest::to_string).collect();
                    repository.records.insert(key, Record { value, revision, blobs });
                }
                Change::Remove => drop(repository.records.remove(&key)),
                Change::Require => {}
            }
        }
        self.catalog.into_iter().for_each(|change| repository.apply(change, now));
        Ok(Outcome::Applied(revision))
    }
}
