//! Atomic changes to a repository.

use crate::host::HostTransaction;
use crate::{Digest, Entry, Error, Statement, Version, VersionDocument, VersionId};
use serde::Serialize;

/// Condition on a key. A commit is applied only if all conditions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// No condition.
    Anything,
    /// The record does not exist.
    Absent,
    /// The record exists.
    Present,
    /// The record exists, and the commit of this revision wrote it.
    Revision(u64),
}

impl Expectation {
    /// Returns the condition that a key has not changed since the plugin read it.
    #[must_use]
    pub fn unchanged<T>(read: Option<&Entry<T>>) -> Self {
        read.map_or(Self::Absent, |entry| Self::Revision(entry.revision))
    }
}

/// Result of a commit. A lost race is an outcome, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a commit that was not applied has changed nothing"]
pub enum Outcome {
    /// Applied and durable. Holds the commit's revision.
    Applied(u64),
    /// Not applied. Holds the first key, in the order of the calls, that did not meet its
    /// condition.
    Stale(String),
    /// Not applied. Holds each blob that a written record names but the repository does not hold.
    UnknownBlobs(Vec<Digest>),
}

/// Change to a repository, from [`Repository::begin`](crate::Repository::begin). Dropping the
/// transaction changes nothing.
///
/// A key has at most one change; a later change replaces the earlier one. A transaction has at most
/// 10,000 changes and 16 MiB of values.
pub struct Transaction {
    host: Box<dyn HostTransaction>,
    previous: Option<Outcome>,
}

impl Transaction {
    pub(crate) fn new(host: Box<dyn HostTransaction>) -> Self {
        Self { host, previous: None }
    }

    /// Records the outcome of the previous attempt at the same change.
    pub(crate) fn after(self, previous: Option<Outcome>) -> Self {
        Self { previous, ..self }
    }

    /// Returns the reason why the previous attempt was not applied. `None` in the first attempt,
    /// and outside of [`Repository::update`](crate::Repository::update).
    pub fn previous(&self) -> Option<&Outcome> {
        self.previous.as_ref()
    }

    /// Returns the key that did not meet its condition in the previous attempt.
    pub fn stale_key(&self) -> Option<&str> {
        match &self.previous {
            Some(Outcome::Stale(key)) => Some(key),
            _ => None,
        }
    }

    /// Writes a record of at most 1 MiB. The repository holds `blobs` while the record exists.
    pub fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]) -> &mut Self {
        self.host.put(key, value, expect, blobs);
        self
    }

    /// Writes a record that is a JSON document.
    ///
    /// # Errors
    /// [`Error::Other`] if the value cannot be written as JSON.
    pub fn put_json(
        &mut self,
        key: &str,
        value: &impl Serialize,
        expect: Expectation,
        blobs: &[Digest],
    ) -> Result<&mut Self, Error> {
        let value = serde_json::to_vec(value)?;
        Ok(self.put(key, &value, expect, blobs))
    }

    /// Removes a record. A missing record is an error only if `expect` requires it.
    pub fn remove(&mut self, key: &str, expect: Expectation) -> &mut Self {
        self.host.remove(key, expect);
        self
    }

    /// Adds a condition on a key without changing it.
    pub fn require(&mut self, key: &str, expect: Expectation) -> &mut Self {
        self.host.require(key, expect);
        self
    }

    /// Lists a version, or changes its listing.
    pub fn show(&mut self, version: &Version) -> &mut Self {
        self.host.show(version);
        self
    }

    /// Removes a version and its files from the listing. A version that is not listed is ignored.
    pub fn hide(&mut self, id: &VersionId) -> &mut Self {
        self.host.hide(id);
        self
    }

    /// Removes a file from the listing. A version without files is removed too.
    pub fn hide_file(&mut self, id: &VersionId, path: &str) -> &mut Self {
        self.host.hide_file(id, path);
        self
    }

    /// Stores a signed statement about a version that this or an earlier change lists. The host
    /// drops a statement about any other version.
    pub fn attest(&mut self, statement: &Statement) -> &mut Self {
        self.host.attest(statement);
        self
    }

    /// Attaches a document to a version that this or an earlier change lists. The host drops a
    /// document of any other version. A record must name the blob of the document.
    pub fn document(&mut self, document: &VersionDocument) -> &mut Self {
        self.host.document(document);
        self
    }

    /// Names a package that the change is about although it neither lists nor hides a version of
    /// it, such as metadata or a signature. The name is spelled as in
    /// [`Version::name`](crate::Version::name). The host then refuses credentials that have no
    /// access to this package.
    pub fn about_package(&mut self, name: &str) -> &mut Self {
        self.host.about_package(name);
        self
    }

    /// Applies the change durably: after [`Outcome::Applied`], the change survives a power failure.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key, a value or a number of changes beyond the limits.
    pub fn commit(self) -> Result<Outcome, Error> {
        self.host.commit()
    }
}
