//! A job of the writer, and its result.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::check;
use super::unanswered::Ticket;
use crate::blobs::row::{BlobLocation, BlobRow};
use crate::error::{ExceededQuota, StoreError};
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};

/// Maximum number of jobs in one transaction.
pub(super) const MAX_JOBS: usize = 256;
/// Number of bytes at which a batch is closed.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// Capacity of the queue. Further callers wait for a slot.
pub(super) const QUEUE: usize = 1024;

/// One commit, or blobs to be stored without a commit.
pub(super) struct Job {
    pub(super) repository: RepositoryId,
    /// The commit; `None` for a job with only `keeps`.
    pub(super) commit: Option<Arc<Commit>>,
    pub(super) keeps: Vec<BlobRow>,
    /// Time at which the job was submitted.
    pub(super) since: Instant,
    pub(super) done: oneshot::Sender<Result<Done, StoreError>>,
    /// Ticket of the unanswered job, dropped together with the job.
    pub(super) _ticket: Ticket,
}

impl Job {
    /// True for a deletion that copies the stored content into the trash for an undo.
    pub(super) fn is_into_trash(&self) -> bool {
        self.commit.as_ref().is_some_and(|commit| commit.trash.is_some())
    }

    /// Approximate bytes that the job adds to the transaction.
    pub(super) fn bytes(&self) -> usize {
        let inline = |row: &BlobRow| match &row.place {
            BlobLocation::Inline(bytes) => bytes.len(),
            BlobLocation::Stored(_) => 0,
        };
        let blobs: usize = self.keeps.iter().map(inline).sum();
        blobs + self.commit.as_deref().map_or(0, check::bytes)
    }
}

pub(crate) struct Done {
    /// Outcome of the commit; `None` without a commit.
    pub(crate) outcome: Option<Outcome>,
    /// Quota that prevented the commit. The repository holds the job's blobs nevertheless.
    pub(crate) refused: Option<ExceededQuota>,
    /// Row of each stored blob, in the order of `keeps`.
    pub(crate) rows: Vec<SettledRow>,
    /// True if nothing was done because bytes of the same digest are stored and must be examined
    /// first.
    pub(crate) unexamined: bool,
}

impl Done {
    /// Result that requests an examination of stored bytes.
    pub(super) fn unexamined() -> Done {
        Done { outcome: None, refused: None, rows: Vec::new(), unexamined: true }
    }
}

/// Row of a stored blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettledRow {
    pub(crate) id: i64,
    /// True if the row has the submitted bytes; false if it keeps the bytes that it had before.
    pub(crate) is_own: bool,
}

/// Handling of repositories that another process has locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Jobs of locked repositories are left out.
    No,
    /// The transaction has waited and holds the lock.
    Over,
}

/// Answers each job with the error `problem`: nothing of the batch was written.
pub(super) fn fail(jobs: Vec<Job>, problem: &StoreError) {
    tracing::warn!(commits = jobs.len(), %problem, "writing a batch of commits failed");
    for job in jobs {
        let _ = job.done.send(Err(StoreError::database(problem.to_string())));
    }
}
