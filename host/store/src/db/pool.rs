//! Connections to PostgreSQL. No call on one waits without end, and one that was left in the middle of something is never used
//! again: when the network goes silent nothing else tells the client.
//!
//! Reads, writes and the commits of the writer have connections of their own, so that what waits for a lock takes none from
//! what does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgConnection, PgDatabaseError, PgRow, PgSeverity};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::servers::Servers;
use super::value::Sql;
use crate::config::DatabaseLimits;
use crate::error::StoreError;

/// Connections at one time for each purpose: 20 together.
const READS: usize = 8;
const WRITES: usize = 6;
const COMMITS: usize = 6;
/// How long a caller waits for a connection, or for one to be made, before it is told that there is none.
const ACQUIRE: Duration = Duration::from_secs(3);
/// How long a connection may take to answer what costs the database nothing.
const PROBE: Duration = Duration::from_secs(2);
/// How long one that only reads may take at most: less than a call of a plugin, which would be blamed for it otherwise.
const READ: Duration = Duration::from_secs(8);
/// A connection that was idle for longer is asked before it is used.
const TRUSTED: Duration = Duration::from_secs(1);
/// Connections end when they were idle for so long, or are so old.
const MAX_IDLE: Duration = Duration::from_mins(10);
const MAX_AGE: Duration = Duration::from_mins(30);
/// What says that a connection brings what was asked for as it was made; and how it is asked.
pub(super) const BOUNDED: (&str, &str) = ("packhouse.bounded", "yes");
const BROUGHT: &str = "SELECT current_setting('packhouse.bounded', true)";
/// How long a close waits for what is under way.
const CLOSING: Duration = Duration::from_secs(5);

/// The connections to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Those that are open.
    pub open: u32,
    /// Those of them that are not in use.
    pub idle: u32,
    /// The most there may be.
    pub most: u32,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// One statement that reads.
    Read,
    /// A transaction of a request, or of the upkeep.
    Write,
    /// A transaction of the writer.
    Commit,
}

impl Purpose {
    /// As the metrics call it.
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
        }
    }
}

/// No answer came in time. Whether what was asked is done is not known.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
pub(super) struct Silent(Duration);

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool(Arc<Inner>);

struct Inner {
    /// For what requests and the upkeep do.
    requests: Side,
    /// For the writer: no other uses the connections on which its statements are prepared.
    writer: Side,
    /// Whether each connection brings its bounds and what else was asked for as it was made.
    bounded: AtomicBool,
    limits: DatabaseLimits,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    commits: Arc<Semaphore>,
    /// Connections from before it are not used again: one of them has gone silent.
    distrusted: Mutex<Option<Instant>>,
    closed: AtomicBool,
}

/// Where connections of a kind are made, and those that are not in use.
struct Side {
    servers: Arc<Servers>,
    idle: Mutex<Vec<Idle>>,
}

impl Side {
    fn new(servers: Servers) -> Side {
        Side { servers: Arc::new(servers), idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Idle {
    connection: PgConnection,
    born: Instant,
    since: Instant,
}

impl Pool {
    /// Connects once, so that an address that leads nowhere is found at the start. `writer` are the servers as the writer connects to
    /// them.
    pub(super) async fn open(
        servers: Servers,
        writer: Servers,
        limits: DatabaseLimits,
    ) -> Result<Pool, StoreError> {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        let pool = Pool(Arc::new(Inner {
            requests: Side::new(servers),
            writer: Side::new(writer),
            bounded: AtomicBool::new(false),
            limits,
            reads: semaphore(READS),
            writes: semaphore(WRITES),
            commits: semaphore(COMMITS),
            distrusted: Mutex::default(),
            closed: AtomicBool::new(false),
        }));
        let mut first = pool.take(Purpose::Read).await?;
        // A pooler in between may pass over what is asked for as a connection is made.
        let brought = first.simple(BROUGHT.into()).await?;
        let bounded = brought.first().and_then(|row| row.try_get::<Option<String>, _>(0).ok().flatten());
        pool.0.bounded.store(bounded.as_deref() == Some(BOUNDED.1), Ordering::Release);
        drop(first);
        Ok(pool)
    }

    /// Whether each of its connections has brought its bounds, and the writer's how their statements are planned.
    pub(super) fn is_bounded(&self) -> bool {
        self.0.bounded.load(Ordering::Acquire)
    }

    fn side(&self, purpose: Purpose) -> &Side {
        match purpose {
            Purpose::Read | Purpose::Write => &self.0.requests,
            Purpose::Commit => &self.0.writer,
        }
    }

    pub(super) fn limits(&self) -> &DatabaseLimits {
        &self.0.limits
    }

    /// Where its connections are made.
    pub(super) fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.0.requests.servers)
    }

    /// The connections there are at the moment.
    pub(super) fn connections(&self) -> Connections {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let idle = self.0.requests.idle().len() + self.0.writer.idle().len();
        let most = READS + WRITES + COMMITS;
        let free: usize =
            [&self.0.reads, &self.0.writes, &self.0.commits].iter().map(|of| of.available_permits()).sum();
        Connections { open: count(most.saturating_sub(free) + idle), idle: count(idle), most: count(most) }
    }

    /// A connection that is idle, or a new one. `Unavailable` when there is none in time.
    pub(super) async fn take(&self, purpose: Purpose) -> Result<Leased, StoreError> {
        let permit = self.permit(purpose).await?;
        while let Some(idle) = self.pop(purpose) {
            let mut leased = self.lease(idle, true, purpose);
            if leased.idle_since.elapsed() < TRUSTED || leased.ping().await {
                return Ok(leased.with(permit));
            }
        }
        self.connect(permit, purpose).await
    }

    /// A new connection in place of one that failed.
    pub(super) async fn take_new(&self, purpose: Purpose) -> Result<Leased, StoreError> {
        self.connect(self.permit(purpose).await?, purpose).await
    }

    async fn permit(&self, purpose: Purpose) -> Result<OwnedSemaphorePermit, StoreError> {
        let semaphore = match purpose {
            Purpose::Read => &self.0.reads,
            Purpose::Write => &self.0.writes,
            Purpose::Commit => &self.0.commits,
        };
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_owned() {
            return Ok(permit);
        }
        let since = Instant::now();
        let waited = timeout(ACQUIRE, Arc::clone(semaphore).acquire_owned()).await;
        metrics::histogram!("packhouse_database_wait_seconds", "purpose" => purpose.name())
            .record(since.elapsed().as_secs_f64());
        match waited {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(StoreError::database("the store is closed")),
            Err(_) => {
                let most = self.connections().most;
                Err(StoreError::database(format!("all {most} connections were in use for too long")))
            }
        }
    }

    fn pop(&self, purpose: Purpose) -> Option<Idle> {
        let distrusted = *self.0.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle = self.side(purpose).idle();
        let sound = |idle: &Idle| {
            distrusted.is_none_or(|at| idle.born > at)
                && idle.since.elapsed() < MAX_IDLE
                && idle.born.elapsed() < MAX_AGE
        };
        idle.retain(sound);
        idle.pop()
    }

    async fn connect(&self, permit: OwnedSemaphorePermit, purpose: Purpose) -> Result<Leased, StoreError> {
        let deadline = Instant::now() + ACQUIRE;
        let mut pause = Duration::from_millis(10);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let problem = match timeout(left, self.side(purpose).servers.connect()).await {
                Ok(Ok(connection)) => {
                    let now = Instant::now();
                    let idle = Idle { connection, born: now, since: now };
                    metrics::counter!("packhouse_database_connects_total", "purpose" => purpose.name())
                        .increment(1);
                    return Ok(self.lease(idle, false, purpose).with(permit));
                }
                Ok(Err(problem)) => problem,
                Err(_) => return Err(StoreError::database(Silent(ACQUIRE))),
            };
            if !is_starting(&problem) || Instant::now() + pause >= deadline {
                return Err(StoreError::database(problem));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ACQUIRE / 5);
        }
    }

    fn lease(&self, idle: Idle, reused: bool, purpose: Purpose) -> Leased {
        let Idle { connection, born, since } = idle;
        let deadline = self.0.limits.deadline();
        let deadline = if matches!(purpose, Purpose::Read) { deadline.min(READ) } else { deadline };
        let pool = self.clone();
        Leased {
            connection: Some(connection),
            born,
            idle_since: since,
            reused,
            sound: true,
            in_transaction: false,
            deadline,
            purpose,
            pool,
            permit: None,
        }
    }

    /// No connection of now is used again.
    fn distrust(&self) {
        *self.0.distrusted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        for (semaphore, permits) in
            [(&self.0.reads, READS), (&self.0.writes, WRITES), (&self.0.commits, COMMITS)]
        {
            let permits = u32::try_from(permits).unwrap_or(u32::MAX);
            // What is under way ends first; what never ends is left behind.
            let _ = timeout(CLOSING, semaphore.acquire_many(permits)).await;
            semaphore.close();
        }
        let idle = [&self.0.requests, &self.0.writer].map(|side| std::mem::take(&mut *side.idle()));
        let closing = idle.into_iter().flatten().map(|idle| timeout(PROBE, idle.connection.close()));
        futures::future::join_all(closing).await;
    }
}

/// Whether the server is about to come up, or has no room at the moment.
fn is_starting(problem: &sqlx::Error) -> bool {
    match problem {
        sqlx::Error::Io(problem) => problem.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(problem) => matches!(problem.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// A connection in use. It goes back when it is dropped, unless it may be in the middle of something: then it is closed.
pub(super) struct Leased {
    /// None once it was given back.
    connection: Option<PgConnection>,
    born: Instant,
    idle_since: Instant,
    reused: bool,
    /// The last call ended, and not with the end of the connection.
    sound: bool,
    in_transaction: bool,
    deadline: Duration,
    purpose: Purpose,
    pool: Pool,
    permit: Option<OwnedSemaphorePermit>,
}

impl Leased {
    fn with(mut self, permit: OwnedSemaphorePermit) -> Leased {
        self.permit = Some(permit);
        self
    }

    /// Whether it had been used before: an error may then mean no more than that it was too old.
    pub(super) fn is_reused(&self) -> bool {
        self.reused
    }

    /// Whether it is of no use any more.
    pub(super) fn has_ended(&self) -> bool {
        !self.sound
    }

    /// How long each call may take from now on.
    pub(super) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// What it is in the middle of ends with `ROLLBACK`, should it be dropped.
    pub(super) fn set_in_transaction(&mut self, in_transaction: bool) {
        self.in_transaction = in_transaction;
    }

    /// Statements without values; the rows that they returned.
    pub(super) async fn simple(&mut self, sql: Sql) -> Result<Vec<PgRow>, StoreError> {
        let Some(connection) = &mut self.connection else { return Err(given_back()) };
        self.sound = false;
        let done = timeout(self.deadline, sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(connection)).await;
        self.ended(done)
    }

    pub(super) async fn fetch(
        &mut self,
        sql: Sql,
        arguments: PgArguments,
        keep: bool,
    ) -> Result<Vec<PgRow>, StoreError> {
        let Some(connection) = &mut self.connection else { return Err(given_back()) };
        self.sound = false;
        let began = Instant::now();
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(keep);
        let done = timeout(self.deadline, query.fetch_all(connection)).await;
        self.answered(began);
        self.ended(done)
    }

    /// How many rows it changed.
    pub(super) async fn execute(
        &mut self,
        sql: Sql,
        arguments: PgArguments,
        keep: bool,
    ) -> Result<u64, StoreError> {
        let Some(connection) = &mut self.connection else { return Err(given_back()) };
        self.sound = false;
        let began = Instant::now();
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(keep);
        let done = timeout(self.deadline, query.execute(connection)).await;
        self.answered(began);
        self.ended(done).map(|done| done.rows_affected())
    }

    /// A statement with values, that began then, has its answer or is given up.
    fn answered(&self, began: Instant) {
        metrics::histogram!("packhouse_database_statement_seconds", "purpose" => self.purpose.name())
            .record(began.elapsed().as_secs_f64());
    }

    /// Whether it answers; when it does not, no connection of its age is trusted any more.
    async fn ping(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        self.sound = false;
        let answered = timeout(PROBE, connection.ping()).await;
        if answered.is_err() {
            self.pool.distrust();
        }
        self.sound = matches!(answered, Ok(Ok(())));
        self.sound
    }

    fn ended<T>(
        &mut self,
        ended: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, StoreError> {
        let ended = ended.map_err(|_| {
            self.pool.distrust();
            StoreError::database(Silent(self.deadline))
        })?;
        self.sound = match &ended {
            Ok(_) => true,
            Err(sqlx::Error::Database(problem)) => {
                let severity = problem.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity);
                !matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic))
            }
            Err(_) => false,
        };
        ended.map_err(StoreError::database)
    }

    fn give_back(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.sound && !self.in_transaction && !self.pool.0.closed.load(Ordering::Acquire) {
            let idle = Idle { connection, born: self.born, since: Instant::now() };
            self.pool.side(self.purpose).idle().push(idle);
        }
        // Otherwise it ends here, and with it what it was in the middle of.
    }
}

fn given_back() -> StoreError {
    StoreError::database("the connection was given back")
}

impl Drop for Leased {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.give_back() };
        if !self.sound || !self.in_transaction {
            return self.give_back();
        }
        // Closed unless the rollback succeeds: also when the runtime ends before it is begun.
        let mut rest = Leased {
            connection: self.connection.take(),
            permit: self.permit.take(),
            pool: self.pool.clone(),
            deadline: PROBE,
            sound: false,
            in_transaction: false,
            ..*self
        };
        runtime.spawn(async move {
            let _ = rest.simple("ROLLBACK".into()).await;
        });
    }
}

/// Whether no answer came, so that another connection may well get one.
pub(crate) fn is_silent(error: &StoreError) -> bool {
    let StoreError::Unavailable { source, .. } = error else { return false };
    source.is::<Silent>()
}
