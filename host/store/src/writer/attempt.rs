//! Attempts to write a batch: one transaction each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{Batch, Changes};
use super::job::{Done, Job, Waiting};
use super::progress::Progress;
use super::sql;
use crate::accounts::{Expected, Revisions, Snapshots};
use crate::changes::{ChangeLog, Touched, announced};
use crate::db::{
    Acknowledgement, Database, Failed, Generation, Patience, Purpose, Transaction, is_retryable,
};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::leases::Leases;
use crate::records::cache::RecordCache;
use crate::webhooks::Bell;

/// How often a transaction is run again that another process stood in the way of.
const ATTEMPTS: u32 = 8;

/// What is told of each commit, so that what it did not change stays good.
pub(crate) struct Memory {
    /// Answers of look-ups.
    pub(crate) snapshots: Arc<Snapshots>,
    /// What commits touched.
    pub(crate) changes: Arc<ChangeLog>,
    /// Records, as the commits leave them.
    pub(crate) records: Arc<RecordCache>,
    /// Who tells other servers of it.
    pub(crate) leases: Option<Leases>,
    /// Wakes who tells hooks of it.
    pub(crate) bell: Arc<Bell>,
    /// Wakes who judges statements.
    pub(crate) attested: Arc<tokio::sync::Notify>,
}

impl Memory {
    /// Takes in a commit, after which the database was of the generation `after`.
    fn remember(
        &self,
        expected: Expected<'_>,
        after: Option<Generation>,
        touched: BTreeMap<RepositoryId, Touched>,
        bumped: Revisions,
        acknowledgement: Acknowledgement,
    ) -> Acknowledgement {
        if let Some(leases) = &self.leases {
            return leases.remember(touched, bumped, acknowledgement);
        }
        // First what was touched: whoever sees a new revision shall find out what it left alone.
        self.changes.remember(touched);
        expected.carry(after, &bumped);
        acknowledgement
    }
}

/// What a batch is written to.
pub(super) struct Target {
    pub(super) database: Database,
    pub(super) memory: Memory,
    pub(super) lease_ms: i64,
    pub(super) progress: Arc<Progress>,
}

/// The result of each job; none: its repository is locked.
pub(super) type Answers = Vec<Option<Result<Done, StoreError>>>;

/// A transaction that has begun, and nothing was read in it.
pub(super) struct Begun {
    transaction: Transaction,
    /// What the database had then.
    before: Option<Generation>,
    waiting: Waiting,
}

impl Begun {
    async fn new(target: &Target) -> Result<Begun, StoreError> {
        let transaction = target.database.begin_for(Purpose::Commit, Patience::Ordinary).await?;
        Ok(Begun { transaction, before: target.database.generation(), waiting: Waiting::No })
    }

    /// With a repository that no other process changes until the end: it is waited for as long as a statement may wait for a lock.
    pub(super) async fn with(target: &Target, repository: RepositoryId) -> Result<Begun, StoreError> {
        let mut begun = Begun::new(target).await?;
        if begun.transaction.is_shared() {
            sql::wait_for(&mut begun.transaction, repository).await?;
        }
        Ok(Begun { waiting: Waiting::Over, ..begun })
    }
}

/// The answers, and when they may be given. What another process has locked is left out.
pub(super) async fn attempt(target: &Target, jobs: &[Job]) -> Result<(Answers, Acknowledgement), Failed> {
    repeat(target, None, None, jobs).await
}

/// The same for jobs of one repository, of which no other process has anything locked in the transaction that has begun.
pub(super) async fn attempt_within(
    target: &Target,
    repository: RepositoryId,
    begun: Option<Begun>,
    jobs: &[Job],
) -> Result<(Answers, Acknowledgement), Failed> {
    repeat(target, Some(repository), begun, jobs).await
}

/// Runs a transaction again where another process stood in its way; with a repository, each waits for that one first.
async fn repeat(
    target: &Target,
    repository: Option<RepositoryId>,
    mut begun: Option<Begun>,
    jobs: &[Job],
) -> Result<(Answers, Acknowledgement), Failed> {
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

async fn transact(target: &Target, begun: Begun, jobs: &[Job]) -> Result<(Answers, Acknowledgement), Failed> {
    let Target { database, memory, lease_ms, .. } = target;
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
        memory.bell.ring(hooks);
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

/// Commits an update without effect, so that the end of a failure is noticed though no client publishes.
pub(super) async fn probe_commit(target: &Target) {
    target.progress.tried();
    let sql = "UPDATE migrations SET applied_at = applied_at WHERE step = 1";
    let tried = async {
        let mut transaction = target.database.begin_for(Purpose::Commit, Patience::Ordinary).await?;
        if transaction.is_shared() {
            // As every commit has them.
            let tables = "repositories, records, record_blobs, blobs, leases, packages, versions, files";
            transaction.execute(format!("LOCK TABLE {tables} IN ROW EXCLUSIVE MODE"), vec![]).await?;
        }
        transaction.execute(sql, vec![]).await?;
        transaction.commit().await
    };
    match tried.await {
        Ok(()) => target.progress.committed(),
        Err(problem) => tracing::warn!(%problem, "nothing can be committed"),
    }
}
