//! Records of formats: in each repository an ordered map of small documents, changed by atomic
//! commits.

use bytes::Bytes;

use crate::accounts::AuditEvent;
use crate::blobs::Blob;
use crate::cached_answers::AnswerChange;
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

/// Maximum length of a key in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Maximum size of a value in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Maximum records of one result of [`crate::Store::scan`].
pub(crate) const MAX_SCAN: u32 = 1000;
/// Maximum bytes of values in one result of a scan.
const MAX_SCAN_BYTES: u64 = 1 << 20;
/// Maximum changes of one commit.
pub const MAX_CHANGES: usize = 10_000;
/// Maximum bytes of values in one commit, and in one result of [`crate::Store::scan`] with more
/// than one record.
pub const MAX_COMMIT_BYTES: usize = 16 << 20;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Key of 1 to 1,024 bytes without NUL.
    pub key: String,
    /// Value of at most 1 MiB.
    pub value: Bytes,
    /// Revision of the commit that wrote the record. Later commits of the repository have higher
    /// revisions.
    pub revision: u64,
}

/// Precondition of a commit on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    Anything,
    /// The record does not exist.
    Absent,
    Present,
    /// The record exists and has this revision.
    Revision(u64),
}

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Writes a record and replaces an existing one.
    Put {
        key: String,
        value: Bytes,
        /// Precondition on the existing record.
        expect: Expectation,
        /// Blobs that the record keeps alive.
        blobs: Vec<Sha256>,
    },
    /// Removes a record. A missing record is not an error unless `expect` requires one.
    Remove {
        key: String,
        /// Precondition on the existing record.
        expect: Expectation,
    },
    /// Changes nothing, but its precondition must hold.
    Require {
        key: String,
        /// Precondition on the existing record.
        expect: Expectation,
    },
}

impl Change {
    /// Key that the change is about.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Change::Put { key, .. } | Change::Remove { key, .. } | Change::Require { key, .. } => key,
        }
    }

    /// Precondition on the existing record.
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
    /// Changes in the order of the calls. If two have the same key, the later replaces the earlier.
    pub changes: Vec<Change>,
    /// Changes of the catalog, in the order of the calls.
    pub catalog: Vec<CatalogChange>,
    /// Changes of cached upstream responses, in the order of the calls.
    pub answers: Vec<AnswerChange>,
    /// Staged blobs. They become durable in the same step, and the repository holds them for the
    /// grace period, even if the outcome is not `Applied`.
    pub keeps: Vec<Blob>,
    /// Changed records that contain tags, so that webhooks are notified of moved tags.
    pub tags: Vec<TagRecord>,
    /// Audit event that is written in the same transaction if the commit is applied.
    pub audit: Option<AuditEvent>,
    /// True for a publish. If it would exceed a quota of the repository or its organization,
    /// nothing is applied. A commit that adds nothing is never refused.
    pub publishes: bool,
    /// Trash entry of a deletion. In the same transaction, the entry receives the content that the
    /// commit changes, removes, requires and hides.
    pub trash: Option<TrashId>,
    /// Trash entry that an undo removes.
    pub undoes: Option<TrashId>,
}

/// The result of a commit. A lost race is an outcome, not an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The commit is applied and durable, with this revision.
    Applied(u64),
    /// First key, in the order of the calls, whose precondition did not hold.
    Stale(String),
    /// Blobs that the puts name and the repository does not hold, each once.
    UnknownBlobs(Vec<Sha256>),
}

/// A page of found packages.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Matches {
    pub names: Vec<String>,
    /// Total number of matching packages.
    pub total: u64,
}
