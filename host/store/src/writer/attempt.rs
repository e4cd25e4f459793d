//! Attempts to write a batch, one transaction each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{Batch, Changes};
use super::job::{Done, Job, Waiting};
use super::progress::Progress;
use super::sql;
use crate::accounts::{ExpectedCommit, Revisions, Snapshots};
use crate::changes::{ChangeLog, Touched, announced};
use crate::db::{
    Acknowledgement, ConnectionPurpose, Database, Failed, Generation, Patience, Transaction, is_retryable,
};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::leases::Leases;
use crate::records::cache::RecordCache;
use crate::webhooks::DeliveryNotifier;

/// Maximum attempts when other processes conflict with a transaction.
const ATTEMPTS: u32 = 8;

/// Caches and logs that receive committed changes, so that unaffected cached results stay valid.
pub(crate) struct Memory {
    /// Cached results of account look-ups.
    pub(crate) snapshots: Arc<Snapshots>,
    /// Log of what commits touched.
    pub(crate) changes: Arc<ChangeLog>,
    /// Records as the commits leave them.
    pub(crate) records: Arc<RecordCache>,
    /// Notifies other servers of commits.
    pub(crate) leases: Option<Leases>,
    pub(crate) delivery_notifier: Arc<DeliveryNotifier>,
    /// Wakes the verification of attestations.
    pub(crate) attested: Arc<tokio::sync::Notify>,
}

impl Memory {
    /// Adds a commit, after which the database had the generation `after`.
    fn remember(
        &self,
        expected: ExpectedCommit<'_>,
        after: Option<Generation>,
        touched: BTreeMap<RepositoryId, Touched>,
        bumped: Revisions,
        acknowledgement: Acknowledgement,
    ) -> Acknowledgement {
        if let Some(leases) = &self.leases {
            return leases.remember(touched, bumped, acknowledgement);
        }
        // Updates the log before the revisions: a reader that sees the new revision must find in
        // the log what the commit touched.
        self.changes.remember(touched);
        expected.carry(after, &bumped);
        acknowledgement
    }
}

/// Database and receivers of the batches.
pub(super) struct BatchTarget {
    pub(super) database: Database,
    pub(super) memory: Memory,
    pub(super) lease_ms: i64,
    pub(super) progress: Arc<Progress>,
}

/// Results of the jobs; `None` if the repository of a job is locked.
pub(super) type JobResults = Vec<Option<Result<Done, StoreError>>>;

/// A transaction that has begun, without any reads yet.
pub(super) struct Begun {
    transaction: Transaction,
    /// Generation of the database at that moment.
    before: Option<Generation>,
    waiting: Waiting,
}

impl Begun {
    async fn new(target: &BatchTarget) -> Result<Begun, StoreError> {
        let transaction = target.database.begin_for(ConnectionPurpose::Commit, Patience::Ordinary).await?;
        Ok(Begun { transaction, before: target.database.generation(), waiting: Waiting::No })
    }

    /// Begins a transaction and locks this repository until the end of the transaction. Waits at
    /// most as long as a statement may wait for a lock.
    pub(super) async fn with(target: &BatchTarget, repository: RepositoryId) -> Result<Begun, StoreError> {
        let mut begun = Begun::new(target).await?;
        if begun.transaction.is_shared() {
            sql::wait_for(&mut begun.transaction, repository).await?;
        }
        Ok(Begun { waiting: Waiting::Over, ..begun })
    }
}

/// Writes a batch without waiting for locks. Returns the results, and when they may be sent. Jobs
/// of locked repositories have no result.
pub(super) async fn attempt(
    target: &BatchTarget,
    jobs: &[Job],
) -> Result<(JobResults, Acknowledgement), Failed> {
    repeat(target, None, None, jobs).await
}

/// Writes jobs of one repository. The transaction, if it has begun, must hold the repository's
/// lock.
pub(super) async fn attempt_within(
    target: &BatchTarget,
    repository: RepositoryId,
    begun: Option<Begun>,
    jobs: &[Job],
) -> Result<(JobResults, Acknowledgement), Failed> {
    repeat(target, Some(repository), begun, jobs).await
}

/// Repeats a transaction after conflicts with other processes. With a repository, each attempt
/// first waits for its lock.
async fn repeat(
    target: &BatchTarget,
    repository: Option<RepositoryId>,
    mut begun: Option<Begun>,
    jobs: &[Job],
) -> Result<(JobResults, Acknowledgement), Failed> {
    let mut attempts = 1;
    loop {
        let begun = match (begun.take(), repository) {
            (Some(begun), _) => Ok(begun),
            (None, Some(repository)) => Begun::with(target, repository).await,
            (None, None) => Begun::new(target).await,
        };
        let done = match begun {
            Ok(begun) => transact(target, begun, jobs).await,
            Err(problem) => Err(Failed::Before(problem)),
        };
        match done {
            Err(Failed::Before(problem) | Failed::Commit(problem))
                if attempts < ATTEMPTS && is_retryable(&problem) =>
            {
                attempts += 1;
            }
            done => return done,
        }
    }
}

async fn transact(
    target: &BatchTarget,
    begun: Begun,
    jobs: &[Job],
) -> Result<(JobResults, Acknowledgement), Failed> {
    let BatchTarget { database, memory, lease_ms, .. } = target;
    let Begun { mut transaction, before, waiting } = begun;
    let read = Batch::read(&mut transaction, jobs, waiting).await;
    let mut batch = read.map_err(Failed::Before)?;
    let answers = jobs.iter().map(|job| batch.judge(job)).collect();
    if batch.changes_anything() {
        let changes = batch.changes(*lease_ms, database.now_ms()).map_err(Failed::Before)?;
        let Changes { statements, bumped, touched, written, hooks, attested } = changes;
        if transaction.is_shared() && !touched.is_empty() {
            transaction.announce(announced::write(&touched));
        }
        let expected = memory.snapshots.expect(before);
        let acknowledgement = transaction.commit_each(statements).await?;
        memory.delivery_notifier.notify(hooks);
        if attested {
            memory.attested.notify_one();
        }
        let after = database.generation();
        let acknowledgement = memory.remember(expected, after, touched, bumped, acknowledgement);
        memory.records.remember(written);
        return Ok((answers, acknowledgement));
    }
    Ok((answers, Acknowledgement::at_once()))
}

/// Commits an update without effect, so that the end of a failure is noticed even if no client
/// publishes.
pub(super) async fn probe_commit(target: &BatchTarget) {
    target.progress.tried();
    let sql = "UPDATE migrations SET applied_at = applied_at WHERE step = 1";
    let tried = async {
        let mut transaction =
            target.database.begin_for(ConnectionPurpose::Commit, Patience::Ordinary).await?;
        if transaction.is_shared() {
            // Takes the table locks that every commit takes, so that the probe fails as long as
            // commits would.
            let tables = "repositories, records, record_blobs, blobs, leases, packages, versions, files";
            transaction.execute(format!("LOCK TABLE {tables} IN ROW EXCLUSIVE MODE"), vec![]).await?;
        }
        transaction.execute(sql, vec![]).await?;
        transaction.commit().await
    };
    match tried.await {
        Ok(()) => target.progress.committed(),
        Err(problem) => tracing::warn!(%problem, "commits are failing"),
    }
}
