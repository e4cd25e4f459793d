//! `records.transaction`: changes gathered here and handed to the store as one commit.

use std::collections::HashMap;

use bytes::Bytes;
use packhouse_store::{
    AuditEvent, CatalogChange, Change, Commit, Digest, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES,
    MAX_VALUE_BYTES, RepositoryId, Sha256,
};
use serde_json::{Value, json};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::records::{
    Expectation, HostTransaction, Outcome, Version, VersionId,
};
use crate::imports::HostError;
use crate::state::{Access, HostState};

/// A change of one repository that is being put together. What is wrong with it is told by `commit`.
pub struct TransactionRep {
    repository: RepositoryId,
    changes: Vec<Change>,
    places: HashMap<String, usize>,
    catalog: Vec<CatalogChange>,
    bytes: usize,
    problem: Option<String>,
}

impl TransactionRep {
    pub(crate) fn new(repository: RepositoryId) -> TransactionRep {
        TransactionRep {
            repository,
            changes: Vec::new(),
            places: HashMap::new(),
            catalog: Vec::new(),
            bytes: 0,
            problem: None,
        }
    }

    /// The first problem is the one that is told; after it nothing is gathered any more.
    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
        self.changes = Vec::new();
        self.catalog = Vec::new();
    }

    fn weigh(&mut self, bytes: usize) -> Result<(), String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_COMMIT_BYTES {
            return Err(format!("a transaction is over {MAX_COMMIT_BYTES} bytes"));
        }
        if self.changes.len() + self.catalog.len() >= MAX_CHANGES {
            return Err(format!("a transaction has over {MAX_CHANGES} changes"));
        }
        Ok(())
    }

    /// A later change of a key stands in the place of the earlier.
    fn change(&mut self, change: Change, bytes: usize) -> Result<(), String> {
        let key = change.key();
        if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(format!("a key is 1 to {MAX_KEY_BYTES} bytes without NUL, not {} bytes", key.len()));
        }
        if let Some(earlier) = self.places.get(key).and_then(|&place| self.changes.get_mut(place)) {
            *earlier = change;
            self.bytes = self.bytes.saturating_add(bytes);
            return if self.bytes > MAX_COMMIT_BYTES { self.weigh(0) } else { Ok(()) };
        }
        self.weigh(key.len().saturating_add(bytes))?;
        self.places.insert(key.to_owned(), self.changes.len());
        self.changes.push(change);
        Ok(())
    }

    fn put(
        &mut self,
        key: String,
        value: Vec<u8>,
        expect: Expectation,
        blobs: &[String],
    ) -> Result<(), String> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!(
                "a value of {} bytes; what is over {MAX_VALUE_BYTES} is a blob",
                value.len()
            ));
        }
        let bytes = value.len() + blobs.len() * size_of::<Sha256>();
        let blobs = blobs.iter().map(|digest| sha256(digest)).collect::<Result<Vec<_>, _>>()?;
        self.change(Change::Put { key, value: Bytes::from(value), expect: expect.into(), blobs }, bytes)
    }

    fn show(&mut self, version: Version) -> Result<(), String> {
        self.weigh(weight(&version))?;
        let mut files = Vec::with_capacity(version.files.len());
        for file in version.files {
            let digest = digest(&file.digest)?;
            files.push(packhouse_store::VersionFile { path: file.path, digest, size: file.size });
        }
        self.catalog.push(CatalogChange::Show(packhouse_store::Version {
            name: version.name,
            version: version.version,
            files,
            published: version.published,
            summary: version.summary,
            properties: version.properties,
            state: version.state,
        }));
        Ok(())
    }

    fn hide(&mut self, id: VersionId, path: Option<String>) -> Result<(), String> {
        self.weigh(id.name.len() + id.version.len() + path.as_ref().map_or(0, String::len))?;
        let (name, version) = (id.name, id.version);
        self.catalog.push(match path {
            None => CatalogChange::Hide { name, version },
            Some(path) => CatalogChange::HideFile { name, version, path },
        });
        Ok(())
    }
}

/// What a version takes in memory, near enough.
fn weight(version: &Version) -> usize {
    let files: usize = version.files.iter().map(|file| file.path.len() + 96).sum();
    let properties: usize =
        version.properties.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
    version.name.len()
        + version.version.len()
        + version.summary.len()
        + version.state.len()
        + files
        + properties
}

fn digest(text: &str) -> Result<Digest, String> {
    text.parse().map_err(|error: packhouse_store::StoreError| error.to_string())
}

fn sha256(text: &str) -> Result<Sha256, String> {
    digest(text)?.sha256().ok_or_else(|| format!("a record names blobs by sha256, not by {text:?}"))
}

impl From<Expectation> for packhouse_store::Expectation {
    fn from(expect: Expectation) -> Self {
        match expect {
            Expectation::Anything => Self::Anything,
            Expectation::Absent => Self::Absent,
            Expectation::Present => Self::Present,
            Expectation::Revision(revision) => Self::Revision(revision),
        }
    }
}

impl HostState {
    /// Runs one step of a transaction, whose bytes count towards what the call may write.
    fn step(
        &mut self,
        handle: &Resource<TransactionRep>,
        bytes: usize,
        step: impl FnOnce(&mut TransactionRep) -> Result<(), String>,
    ) -> Result<()> {
        let counted = self.count_written(bytes);
        let transaction = self.held_mut(handle)?;
        let done = match counted {
            Ok(()) => step(transaction),
            Err(_) => Err("this call has written more than it may".to_owned()),
        };
        if let Err(problem) = done {
            transaction.refuse(problem);
        }
        Ok(())
    }
}

/// How many versions an event names.
const NAMED_VERSIONS: usize = 10;

/// The versions that a commit shows or hides, each once, as an event's details.
fn details(catalog: &[CatalogChange]) -> String {
    let named = |change: &CatalogChange| match change {
        CatalogChange::Show(packhouse_store::Version { name, version, .. })
        | CatalogChange::Hide { name, version }
        | CatalogChange::HideFile { name, version, .. }
        | CatalogChange::ShowFile(packhouse_store::ShownFile { name, version, .. }) => {
            json!({"name": name, "version": version})
        }
    };
    let mut versions: Vec<Value> = Vec::new();
    for version in catalog.iter().map(named) {
        if versions.len() == NAMED_VERSIONS {
            break;
        }
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    json!({"versions": versions}).to_string()
}

impl HostState {
    /// What is remembered of a commit: nothing where the call only reads, as when a cache is filled, or the commit changes nothing.
    fn event(&self, transaction: &TransactionRep) -> Option<AuditEvent> {
        let writes = matches!(self.access, Access::Act(action) if action.writes());
        let requires = |change: &Change| matches!(change, Change::Require { .. });
        let changes = !transaction.catalog.is_empty() || !transaction.changes.iter().all(requires);
        let event = self.audit.as_ref().filter(|_| writes && changes)?;
        Some(AuditEvent { detail: details(&transaction.catalog), ..event.clone() })
    }
}

impl HostTransaction for HostState {
    fn put(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        value: Vec<u8>,
        expect: Expectation,
        blobs: Vec<String>,
    ) -> Result<()> {
        self.step(&transaction, value.len(), |it| it.put(key, value, expect, &blobs))
    }

    fn remove(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        expect: Expectation,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.change(Change::Remove { key, expect: expect.into() }, 0))
    }

    fn require(
        &mut self,
        transaction: Resource<TransactionRep>,
        key: String,
        expect: Expectation,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.change(Change::Require { key, expect: expect.into() }, 0))
    }

    fn show(&mut self, transaction: Resource<TransactionRep>, version: Version) -> Result<()> {
        self.step(&transaction, weight(&version), |it| it.show(version))
    }

    fn hide(&mut self, transaction: Resource<TransactionRep>, id: VersionId) -> Result<()> {
        self.step(&transaction, 0, |it| it.hide(id, None))
    }

    fn hide_file(
        &mut self,
        transaction: Resource<TransactionRep>,
        id: VersionId,
        path: String,
    ) -> Result<()> {
        self.step(&transaction, 0, |it| it.hide(id, Some(path)))
    }

    async fn commit(&mut self, transaction: Resource<TransactionRep>) -> Result<Outcome, HostError> {
        let transaction = self.take(transaction)?;
        if let Some(problem) = transaction.problem {
            return Err(HostError::invalid(problem));
        }
        let repository = transaction.repository;
        let keeps = self.kept.extract_if(.., |(kept_in, _)| *kept_in == repository);
        let keeps = keeps.map(|(_, blob)| blob).collect();
        let audit = self.event(&transaction);
        let commit = Commit { changes: transaction.changes, catalog: transaction.catalog, keeps, audit };
        let storage = self.storage()?;
        let _excused = self.clock.excuse();
        Ok(match storage.commit(repository, commit).await? {
            packhouse_store::Outcome::Applied(revision) => Outcome::Applied(revision),
            packhouse_store::Outcome::Stale(key) => Outcome::Stale(key),
            packhouse_store::Outcome::UnknownBlobs(digests) => {
                Outcome::UnknownBlobs(digests.iter().map(|sha256| sha256.digest().to_string()).collect())
            }
        })
    }

    fn drop(&mut self, transaction: Resource<TransactionRep>) -> Result<()> {
        self.take(transaction)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(transaction: &mut TransactionRep, key: &str, value: &[u8]) -> Result<(), String> {
        transaction.put(key.to_owned(), value.to_vec(), Expectation::Anything, &[])
    }

    #[test]
    fn a_later_change_of_a_key_replaces_the_earlier() {
        let mut transaction = TransactionRep::new(RepositoryId(1));
        put(&mut transaction, "a", b"1").unwrap();
        put(&mut transaction, "b", b"2").unwrap();
        put(&mut transaction, "a", b"3").unwrap();
        let pairs = transaction.changes.iter().map(|change| match change {
            Change::Put { key, value, .. } => (key.as_str(), value.as_ref()),
            _ => panic!("only puts"),
        });
        let values: Vec<(&str, &[u8])> = pairs.collect();
        assert_eq!(values, [("a", b"3".as_ref()), ("b", b"2".as_ref())]);
    }

    #[test]
    fn what_goes_beyond_the_bounds_is_refused() {
        let refused = |key: &str, value: &[u8]| put(&mut TransactionRep::new(RepositoryId(1)), key, value);
        assert!(refused("", b"").is_err());
        assert!(refused("a\0b", b"").is_err());
        assert!(refused(&"k".repeat(MAX_KEY_BYTES + 1), b"").is_err());
        assert!(refused("k", &vec![0; MAX_VALUE_BYTES + 1]).is_err());
        let mut many = TransactionRep::new(RepositoryId(1));
        let filled = (0..MAX_CHANGES).all(|number| put(&mut many, &number.to_string(), b"").is_ok());
        assert!(filled && put(&mut many, "one more", b"").is_err());
    }

    #[test]
    fn the_same_key_again_and_again_is_bounded_too() {
        let mut transaction = TransactionRep::new(RepositoryId(1));
        let value = vec![0; MAX_VALUE_BYTES];
        let puts = (0..100).take_while(|_| put(&mut transaction, "k", &value).is_ok()).count();
        assert!(puts <= MAX_COMMIT_BYTES / MAX_VALUE_BYTES);
    }
}
