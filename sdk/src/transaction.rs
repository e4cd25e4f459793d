//! A change to a repository: all of it or none of it.

use crate::host::HostTransaction;
use crate::{Digest, Entry, Error, Statement, Version, VersionDocument, VersionId};
use serde::Serialize;

/// What must hold of a key for a commit to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing.
    Anything,
    /// There is no record.
    Absent,
    /// There is one.
    Present,
    /// There is one, put by the commit of this revision.
    Revision(u64),
}

impl Expectation {
    /// That a key is still as it was read.
    #[must_use]
    pub fn unchanged<T>(read: Option<&Entry<T>>) -> Self {
        read.map_or(Self::Absent, |entry| Self::Revision(entry.revision))
    }
}

/// What became of a commit. A lost race is an outcome, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a commit that was not applied has changed nothing"]
pub enum Outcome {
    /// Applied, durably: the commit's revision.
    Applied(u64),
    /// Not applied: the first key, in the order of the calls, that was not as expected.
    Stale(String),
    /// Not applied: all that the puts name and the repository does not hold, each once.
    UnknownBlobs(Vec<Digest>),
}

/// A change that is being put together, from [`Repository::begin`](crate::Repository::begin). Dropped, nothing happens.
///
/// At most one change a key: a later one replaces the earlier. At most 10,000 changes and 16 MiB of values.
pub struct Transaction {
    host: Box<dyn HostTransaction>,
    previous: Option<Outcome>,
}

impl Transaction {
    pub(crate) fn new(host: Box<dyn HostTransaction>) -> Self {
        Self { host, previous: None }
    }

    /// The same change, tried again after this outcome.
    pub(crate) fn after(self, previous: Option<Outcome>) -> Self {
        Self { previous, ..self }
    }

    /// Why the attempt before this one was not applied; none in the first attempt, and outside of
    /// [`Repository::update`](crate::Repository::update).
    pub fn previous(&self) -> Option<&Outcome> {
        self.previous.as_ref()
    }

    /// The key that was not as the attempt before this one expected it.
    pub fn stale_key(&self) -> Option<&str> {
        match &self.previous {
            Some(Outcome::Stale(key)) => Some(key),
            _ => None,
        }
    }

    /// Puts a record of at most 1 MiB. `blobs` are those that it keeps alive.
    pub fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]) -> &mut Self {
        self.host.put(key, value, expect, blobs);
        self
    }

    /// Puts a record that is a JSON document.
    ///
    /// # Errors
    /// [`Error::Other`] when it cannot be written as JSON.
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

    /// Removes a record; one that is not there is no fault unless `expect` says so.
    pub fn remove(&mut self, key: &str, expect: Expectation) -> &mut Self {
        self.host.remove(key, expect);
        self
    }

    /// Changes nothing, but must hold too.
    pub fn require(&mut self, key: &str, expect: Expectation) -> &mut Self {
        self.host.require(key, expect);
        self
    }

    /// Shows a version, or changes what is shown of it.
    pub fn show(&mut self, version: &Version) -> &mut Self {
        self.host.show(version);
        self
    }

    /// No longer shows a version, with all its files. One that is not shown is no fault.
    pub fn hide(&mut self, id: &VersionId) -> &mut Self {
        self.host.hide(id);
        self
    }

    /// No longer shows one file; a version without a file left is no longer shown either.
    pub fn hide_file(&mut self, id: &VersionId, path: &str) -> &mut Self {
        self.host.hide_file(id, path);
        self
    }

    /// Keeps a signed statement about a version that is shown, by this change or before it; about another it is dropped.
    pub fn attest(&mut self, statement: &Statement) -> &mut Self {
        self.host.attest(statement);
        self
    }

    /// Lists a document with a version that is shown, by this change or before it; with another it is dropped. A record must name its
    /// blob.
    pub fn document(&mut self, document: &VersionDocument) -> &mut Self {
        self.host.document(document);
        self
    }

    /// Applies it, durably: who is told [`Outcome::Applied`] finds it after a power cut.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key, a value or a number of changes beyond what is allowed.
    pub fn commit(self) -> Result<Outcome, Error> {
        self.host.commit()
    }
}
