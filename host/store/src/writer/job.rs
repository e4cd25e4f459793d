//! A job of the writer, and its result.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::check;
use super::unanswered::Ticket;
use crate::blobs::row::{BlobRow, Place};
use crate::error::{ExceededQuota, StoreError};
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};

/// Most jobs in one transaction.
pub(super) const MAX_JOBS: usize = 256;
/// A batch is closed once it has this many bytes.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// How many jobs may wait in the queue; further callers wait for a place in it.
pub(super) const QUEUE: usize = 1024;

/// One commit, or blobs to be kept.
pub(super) struct Job {
    pub(super) repository: RepositoryId,
    /// None: nothing but `keeps`.
    pub(super) commit: Option<Arc<Commit>>,
    pub(super) keeps: Vec<BlobRow>,
    /// When it was handed in.
    pub(super) since: Instant,
    pub(super) done: oneshot::Sender<Result<Done, StoreError>>,
    /// Until it is dropped, which is when it is answered.
    pub(super) _ticket: Ticket,
}

impl Job {
    /// Whether it is a deletion that keeps what the database has for an undo.
    pub(super) fn is_into_trash(&self) -> bool {
        self.commit.as_ref().is_some_and(|commit| commit.trash.is_some())
    }

    /// About how many bytes it adds to the transaction.
    pub(super) fn bytes(&self) -> usize {
        let inline = |row: &BlobRow| match &row.place {
            Place::Inline(bytes) => bytes.len(),
            Place::Stored(_) => 0,
        };
        let blobs: usize = self.keeps.iter().map(inline).sum();
        blobs + self.commit.as_deref().map_or(0, check::bytes)
    }
}

/// The result of a job.
pub(crate) struct Done {
    /// None when there was no commit in it.
    pub(crate) outcome: Option<Outcome>,
    /// Why the commit was not applied, where that is no outcome: what it keeps is held all the same.
    pub(crate) refused: Option<ExceededQuota>,
    /// For each kept blob, which row it now is.
    pub(crate) rows: Vec<KeptRow>,
    /// Nothing was done: bytes of the same digest are stored, and it is not known whether they can
    /// be read.
    pub(crate) unexamined: bool,
}

impl Done {
    /// Asks for an examination of what is stored.
    pub(super) fn unexamined() -> Done {
        Done { outcome: None, refused: None, rows: Vec::new(), unexamined: true }
    }
}

/// The row that a kept blob now is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptRow {
    pub(crate) id: i64,
    /// Whether the row has the bytes that were handed in, and not those that were there before.
    pub(crate) is_own: bool,
}

/// Whether a repository that is locked is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Its jobs are left out.
    No,
    /// It was: the transaction has it locked.
    Over,
}

/// Tells each job that nothing of the batch is written.
pub(super) fn fail(jobs: Vec<Job>, problem: &StoreError) {
    tracing::warn!(commits = jobs.len(), %problem, "a batch of commits could not be written");
    for job in jobs {
        let _ = job.done.send(Err(StoreError::database(problem.to_string())));
    }
}
