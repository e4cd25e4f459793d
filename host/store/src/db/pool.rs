//! Connection pool for PostgreSQL. Every call has a time limit, because nothing else detects a
//! network that has gone silent. The pool never reuses a connection that was interrupted within a
//! call.
//!
//! Reads, writes and the writer's commits have separate limits. So calls that wait for a lock do
//! not use up the connections for other calls.

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

/// Concurrent connections for each purpose; 20 in all.
const READS: usize = 8;
const WRITES: usize = 6;
const COMMITS: usize = 6;
/// Time limit for getting a connection, or for making one, before the caller gets an error.
const ACQUIRE: Duration = Duration::from_secs(3);
/// Time limit for a call that costs the database nothing.
const PROBE: Duration = Duration::from_secs(2);
/// Upper limit for a read. It is shorter than the limit of a plugin call, so that a slow database
/// does not look like a slow plugin.
const READ: Duration = Duration::from_secs(8);
/// Idle time after which a connection is pinged before use.
const TRUSTED: Duration = Duration::from_secs(1);
/// Limits after which an idle or an old connection is closed.
const MAX_IDLE: Duration = Duration::from_mins(10);
const MAX_AGE: Duration = Duration::from_mins(30);
/// Startup setting, with its value, whose presence shows that a connection received its startup
/// options.
pub(super) const BOUNDED: (&str, &str) = ("packhouse.bounded", "yes");
const BOUNDED_QUERY: &str = "SELECT current_setting('packhouse.bounded', true)";
/// Time limit for calls in progress when the pool is closed.
const CLOSING: Duration = Duration::from_secs(5);

/// Numbers of connections to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    pub open: u32,
    pub idle: u32,
    /// Maximum number of open connections.
    pub most: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ConnectionPurpose {
    /// A single statement that reads.
    Read,
    /// A transaction of a request or of maintenance.
    Write,
    /// A transaction of the writer.
    Commit,
}

impl ConnectionPurpose {
    /// Returns the name in the metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
        }
    }
}

/// Error when no answer came in time. The call may have taken effect.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
pub(super) struct NoAnswer(Duration);

#[derive(Clone)]
pub(super) struct Pool(Arc<PoolState>);

struct PoolState {
    /// Connections for requests and maintenance.
    requests: ConnectionSet,
    /// Connections of the writer. Only the writer uses them, because its statements are prepared on
    /// them.
    writer: ConnectionSet,
    /// True if connections receive their startup options, and with them their time limits.
    bounded: AtomicBool,
    limits: DatabaseLimits,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    commits: Arc<Semaphore>,
    /// Time at which a connection last went silent. The pool does not reuse connections made before
    /// it.
    distrusted: Mutex<Option<Instant>>,
    closed: AtomicBool,
}

/// Servers and idle connections of one kind.
struct ConnectionSet {
    servers: Arc<Servers>,
    idle: Mutex<Vec<Idle>>,
}

impl ConnectionSet {
    fn new(servers: Servers) -> ConnectionSet {
        ConnectionSet { servers: Arc::new(servers), idle: Mutex::default() }
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
    /// Creates the pool and connects once, so that a wrong address is detected at the start.
    /// `writer` has the same servers with the writer's options.
    pub(super) async fn open(
        servers: Servers,
        writer: Servers,
        limits: DatabaseLimits,
    ) -> Result<Pool, StoreError> {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        let pool = Pool(Arc::new(PoolState {
            requests: ConnectionSet::new(servers),
            writer: ConnectionSet::new(writer),
            bounded: AtomicBool::new(false),
            limits,
            reads: semaphore(READS),
            writes: semaphore(WRITES),
            commits: semaphore(COMMITS),
            distrusted: Mutex::default(),
            closed: AtomicBool::new(false),
        }));
        let mut first = pool.take(ConnectionPurpose::Read).await?;
        // A pooler between this server and PostgreSQL may ignore the startup options.
        let answer = first.simple(BOUNDED_QUERY.into()).await?;
        let bounded = answer.first().and_then(|row| row.try_get::<Option<String>, _>(0).ok().flatten());
        pool.0.bounded.store(bounded.as_deref() == Some(BOUNDED.1), Ordering::Release);
        drop(first);
        Ok(pool)
    }

    /// Returns whether connections receive their startup options: the time limits, and the planner
    /// settings of the writer.
    pub(super) fn is_bounded(&self) -> bool {
        self.0.bounded.load(Ordering::Acquire)
    }

    fn set_for(&self, purpose: ConnectionPurpose) -> &ConnectionSet {
        match purpose {
            ConnectionPurpose::Read | ConnectionPurpose::Write => &self.0.requests,
            ConnectionPurpose::Commit => &self.0.writer,
        }
    }

    pub(super) fn limits(&self) -> &DatabaseLimits {
        &self.0.limits
    }

    pub(super) fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.0.requests.servers)
    }

    /// Returns the present numbers of connections.
    pub(super) fn connections(&self) -> Connections {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let idle = self.0.requests.idle().len() + self.0.writer.idle().len();
        let most = READS + WRITES + COMMITS;
        let free: usize =
            [&self.0.reads, &self.0.writes, &self.0.commits].iter().map(|of| of.available_permits()).sum();
        Connections { open: count(most.saturating_sub(free) + idle), idle: count(idle), most: count(most) }
    }

    /// Returns an idle or a new connection. `Unavailable` if none is available in time.
    pub(super) async fn take(&self, purpose: ConnectionPurpose) -> Result<PooledConnection, StoreError> {
        let permit = self.permit(purpose).await?;
        while let Some(idle) = self.pop(purpose) {
            let mut pooled = self.pooled(idle, true, purpose);
            if pooled.idle_since.elapsed() < TRUSTED || pooled.ping().await {
                return Ok(pooled.with(permit));
            }
        }
        self.connect(permit, purpose).await
    }

    /// Returns a new connection in place of a failed one.
    pub(super) async fn take_new(&self, purpose: ConnectionPurpose) -> Result<PooledConnection, StoreError> {
        self.connect(self.permit(purpose).await?, purpose).await
    }

    async fn permit(&self, purpose: ConnectionPurpose) -> Result<OwnedSemaphorePermit, StoreError> {
        let semaphore = match purpose {
            ConnectionPurpose::Read => &self.0.reads,
            ConnectionPurpose::Write => &self.0.writes,
            ConnectionPurpose::Commit => &self.0.commits,
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

    fn pop(&self, purpose: ConnectionPurpose) -> Option<Idle> {
        let distrusted = *self.0.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle = self.set_for(purpose).idle();
        let sound = |idle: &Idle| {
            distrusted.is_none_or(|at| idle.born > at)
                && idle.since.elapsed() < MAX_IDLE
                && idle.born.elapsed() < MAX_AGE
        };
        idle.retain(sound);
        idle.pop()
    }

    async fn connect(
        &self,
        permit: OwnedSemaphorePermit,
        purpose: ConnectionPurpose,
    ) -> Result<PooledConnection, StoreError> {
        let deadline = Instant::now() + ACQUIRE;
        let mut pause = Duration::from_millis(10);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let problem = match timeout(left, self.set_for(purpose).servers.connect()).await {
                Ok(Ok(connection)) => {
                    let now = Instant::now();
                    let idle = Idle { connection, born: now, since: now };
                    metrics::counter!("packhouse_database_connects_total", "purpose" => purpose.name())
                        .increment(1);
                    return Ok(self.pooled(idle, false, purpose).with(permit));
                }
                Ok(Err(problem)) => problem,
                Err(_) => return Err(StoreError::database(NoAnswer(ACQUIRE))),
            };
            if !is_starting(&problem) || Instant::now() + pause >= deadline {
                return Err(StoreError::database(problem));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ACQUIRE / 5);
        }
    }

    fn pooled(&self, idle: Idle, reused: bool, purpose: ConnectionPurpose) -> PooledConnection {
        let Idle { connection, born, since } = idle;
        let deadline = self.0.limits.deadline();
        let deadline = if matches!(purpose, ConnectionPurpose::Read) { deadline.min(READ) } else { deadline };
        let pool = self.clone();
        PooledConnection {
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

    /// Excludes all present connections from further use.
    fn distrust(&self) {
        *self.0.distrusted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        for (semaphore, permits) in
            [(&self.0.reads, READS), (&self.0.writes, WRITES), (&self.0.commits, COMMITS)]
        {
            let permits = u32::try_from(permits).unwrap_or(u32::MAX);
            // Calls in progress get time to end. The rest are abandoned.
            let _ = timeout(CLOSING, semaphore.acquire_many(permits)).await;
            semaphore.close();
        }
        let idle = [&self.0.requests, &self.0.writer].map(|set| std::mem::take(&mut *set.idle()));
        let closing = idle.into_iter().flatten().map(|idle| timeout(PROBE, idle.connection.close()));
        futures::future::join_all(closing).await;
    }
}

/// Returns whether the server is starting or temporarily has no room.
fn is_starting(problem: &sqlx::Error) -> bool {
    match problem {
        sqlx::Error::Io(problem) => problem.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(problem) => matches!(problem.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// A connection taken from the pool. Dropping it returns it to the pool, or closes it if a call may
/// be in progress.
pub(super) struct PooledConnection {
    /// `None` after it was returned.
    connection: Option<PgConnection>,
    born: Instant,
    idle_since: Instant,
    reused: bool,
    /// True if the last call has ended and the connection survived it.
    sound: bool,
    in_transaction: bool,
    deadline: Duration,
    purpose: ConnectionPurpose,
    pool: Pool,
    permit: Option<OwnedSemaphorePermit>,
}

impl PooledConnection {
    fn with(mut self, permit: OwnedSemaphorePermit) -> PooledConnection {
        self.permit = Some(permit);
        self
    }

    /// Returns whether the connection had been used before. If so, an error may only mean that the
    /// server has closed it since.
    pub(super) fn is_reused(&self) -> bool {
        self.reused
    }

    /// Returns whether the connection is unusable.
    pub(super) fn has_ended(&self) -> bool {
        !self.sound
    }

    /// Sets the time limit of each further call.
    pub(super) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Sets whether dropping the connection must send `ROLLBACK`.
    pub(super) fn set_in_transaction(&mut self, in_transaction: bool) {
        self.in_transaction = in_transaction;
    }

    /// Runs statements without values and returns their rows.
    pub(super) async fn simple(&mut self, sql: Sql) -> Result<Vec<PgRow>, StoreError> {
        let Some(connection) = &mut self.connection else { return Err(returned()) };
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
        let Some(connection) = &mut self.connection else { return Err(returned()) };
        self.sound = false;
        let began = Instant::now();
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(keep);
        let done = timeout(self.deadline, query.fetch_all(connection)).await;
        self.answered(began);
        self.ended(done)
    }

    /// Runs a statement and returns the number of changed rows.
    pub(super) async fn execute(
        &mut self,
        sql: Sql,
        arguments: PgArguments,
        keep: bool,
    ) -> Result<u64, StoreError> {
        let Some(connection) = &mut self.connection else { return Err(returned()) };
        self.sound = false;
        let began = Instant::now();
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(keep);
        let done = timeout(self.deadline, query.execute(connection)).await;
        self.answered(began);
        self.ended(done).map(|done| done.rows_affected())
    }

    /// Records the duration of a statement that has its answer or was abandoned.
    fn answered(&self, began: Instant) {
        metrics::histogram!("packhouse_database_statement_seconds", "purpose" => self.purpose.name())
            .record(began.elapsed().as_secs_f64());
    }

    /// Returns whether the server answers. After a timeout, no older connection is trusted.
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
            StoreError::database(NoAnswer(self.deadline))
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

    fn return_to_pool(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.sound && !self.in_transaction && !self.pool.0.closed.load(Ordering::Acquire) {
            let idle = Idle { connection, born: self.born, since: Instant::now() };
            self.pool.set_for(self.purpose).idle().push(idle);
        }
        // Otherwise the connection is closed here, which ends its transaction.
    }
}

fn returned() -> StoreError {
    StoreError::database("the connection was given back")
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.return_to_pool() };
        if !self.sound || !self.in_transaction {
            return self.return_to_pool();
        }
        // `rest` closes the connection unless the rollback succeeds, even if the runtime ends
        // before the rollback begins.
        let mut rest = PooledConnection {
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

/// Returns whether the error is a timeout. Another connection may then get an answer.
pub(crate) fn is_timeout(error: &StoreError) -> bool {
    let StoreError::Unavailable { source, .. } = error else { return false };
    source.is::<NoAnswer>()
}
