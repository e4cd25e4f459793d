//! What a format remembers: in each repository an ordered map of small documents, changed by atomic commits.

use bytes::Bytes;

use crate::accounts::AuditEvent;
use crate::answers::AnswerChange;
use crate::blobs::Blob;
use crate::catalog::CatalogChange;
use crate::digest::Sha256;
use crate::ids::TrashId;
use crate::webhooks::TagRecord;

pub(crate) mod cache;
pub(crate) mod cached;
mod cached_scan;
pub(crate) mod key_list;
pub(crate) mod keys;
mod listing;
mod patch;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod search;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Largest value of one record, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Most records of one answer to [`crate::Store::scan`].
pub(crate) const MAX_SCAN: u32 = 1000;
/// Most bytes of values in it.
const MAX_SCAN_BYTES: u64 = 1 << 20;
/// Most changes of one commit.
pub const MAX_CHANGES: usize = 10_000;
/// Most bytes of values in one commit, and in one answer of [`crate::Store::scan`] where more than one record is in it.
pub const MAX_COMMIT_BYTES: usize = 16 << 20;

/// A record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// 1 to 1,024 bytes without NUL.
    pub key: String,
    /// At most 1 MiB.
    pub value: Bytes,
    /// That of the commit which put it: never used twice in a repository.
    pub revision: u64,
}

/// What must hold of a key for a commit to be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// Nothing.
    Anything,
    /// There is no such record.
    Absent,
    /// There is one.
    Present,
    /// There is one, of this revision.
    Revision(u64),
}

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Puts a record in the place of what was there.
    Put {
        /// Its key.
        key: String,
        /// Its value.
        value: Bytes,
        /// What must hold before.
        expect: Expectation,
        /// The blobs that it keeps alive.
        blobs: Vec<Sha256>,
    },
    /// Removes a record; one that is not there is no fault unless `expect` says so.
    Remove {
        /// Its key.
        key: String,
        /// What must hold before.
        expect: Expectation,
    },
    /// Changes nothing, but must hold too.
    Require {
        /// Its key.
        key: String,
        /// What must hold.
        expect: Expectation,
    },
}

impl Change {
    /// The key that it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Change::Put { key, .. } | Change::Remove { key, .. } | Change::Require { key, .. } => key,
        }
    }

    /// What must hold of it.
    #[must_use]
    pub fn expect(&self) -> Expectation {
        match self {
            Change::Put { expect, .. } | Change::Remove { expect, .. } | Change::Require { expect, .. } => {
                *expect
            }
        }
    }
}

/// Changes that are applied together or not at all.
#[derive(Clone, Default, Debug)]
pub struct Commit {
    /// In the order of the calls. If two have the same key, the later replaces the earlier.
    pub changes: Vec<Change>,
    /// What people see of it.
    pub catalog: Vec<CatalogChange>,
    /// What a proxy keeps of its upstream, in the order of the calls.
    pub answers: Vec<AnswerChange>,
    /// Staged blobs that are made durable, and held in the repository for the time of grace, in the same step. They are held
    /// also when the outcome is not `Applied`.
    pub keeps: Vec<Blob>,
    /// Which of the changed records hold tags, so that hooks are told of those that move.
    pub tags: Vec<TagRecord>,
    /// What is remembered of it, in the same transaction, when it is applied.
    pub audit: Option<AuditEvent>,
    /// Whether it publishes: where it would bring the repository or its organization past a quota, nothing of it is applied. What
    /// adds nothing is never refused.
    pub publishes: bool,
    /// Of a deletion: the entry of the trash that keeps, in the same transaction, what it changes, removes, requires and hides.
    pub trash: Option<TrashId>,
    /// Of an undo: the entry of the trash that is gone with it.
    pub undoes: Option<TrashId>,
}

/// The result of a commit. A lost race is an outcome, not an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is applied and durable; its revision.
    Applied(u64),
    /// The first key, in the order of the calls, that was not as expected.
    Stale(String),
    /// All that the puts name and the repository does not hold, each once.
    UnknownBlobs(Vec<Sha256>),
}

/// A page of the packages found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Matches {
    /// Names of packages.
    pub names: Vec<String>,
    /// How many match in all.
    pub total: u64,
}
