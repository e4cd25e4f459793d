//! Transactions that may write, with single and multi-row statements.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::arrays::{Arguments, postgres_arguments};
use super::clock::Clock;
use super::committed::{Acknowledgement, Announcer, COMMIT, Committed, TOUCHED, max_lease_wait};
use super::counters::Counters;
use super::multi_row::{MultiRow, PART, Prepared, merge_changes, merge_queries};
use super::pool::{ConnectionPurpose, Pool, PooledConnection};
use super::sqlite_writer::{Failed, LocalTransaction, StatementResult};
use super::value::{Row, Sql, Value};
use crate::error::StoreError;

/// A transaction that may write. Dropping it without `commit` undoes it.
pub(crate) struct Transaction {
    inner: EngineTransaction,
    counters: Arc<Counters>,
    clock: Arc<Clock>,
    /// True if a request caused the transaction.
    counted: bool,
    announcer: Option<Arc<dyn Announcer>>,
    /// Changes to repositories, encoded for other servers.
    touched: Option<Arc<[u8]>>,
}

/// Setting that a transaction makes for the triggers of PostgreSQL. The setting states that this
/// process waits for other leases after the commit, and which changes it announces itself. With
/// `facts`, the process announces changes to repositories, and the triggers announce the rest. With
/// `all`, the process also announces revisions, as the writer does.
const ANNOUNCES: &str = "packhouse.announces";

/// Startup settings of the writer's connections. Its statements all seek by keys and pass rows as
/// arrays, so one plan suits every call. The plan is made once, for tables that may be empty now
/// but will grow.
pub(super) const WRITER_OPTIONS: [(&str, &str); 6] = [
    (ANNOUNCES, "all"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    // The planner gives a disabled plan type a high cost, and JIT would compile such costly plans.
    ("jit", "off"),
];

enum EngineTransaction {
    Sqlite(LocalTransaction),
    Postgres(PooledConnection),
}

/// Time limit for a statement of a transaction on PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Configured limit, for statements that a request waits for.
    Ordinary,
    /// 30 times the configured limit, for maintenance.
    Slow,
    /// No limit, for changes of the schema.
    Endless,
}

/// Factor of the time limit for maintenance.
const SLOW: u32 = 30;
/// Time limit for beginning a transaction, which costs the database nothing.
const BEGIN: Duration = Duration::from_secs(3);

impl Patience {
    /// Returns the statements that begin a transaction, to be sent in one message. Their settings
    /// apply to this transaction only, so that a pooler may give each transaction another
    /// connection. The message leaves out settings that the connection already has.
    fn begin(self, pool: &Pool, purpose: ConnectionPurpose) -> String {
        let has_options = pool.is_bounded();
        let mut set: Vec<(&str, String)> = Vec::new();
        if !has_options || self != Patience::Ordinary {
            set.extend(self.bounds(pool));
        }
        match purpose {
            ConnectionPurpose::Commit if has_options => {}
            ConnectionPurpose::Commit => {
                set.extend(WRITER_OPTIONS.map(|(name, value)| (name, value.to_owned())))
            }
            ConnectionPurpose::Read | ConnectionPurpose::Write => set.push((ANNOUNCES, "facts".to_owned())),
        }
        let set: String = set.iter().map(|(name, value)| format!("; SET LOCAL {name} = '{value}'")).collect();
        format!("BEGIN{set}")
    }

    fn bounds(self, pool: &Pool) -> [(&'static str, String); 3] {
        let limits = pool.limits();
        let (statement, lock) = match self {
            Patience::Ordinary => (limits.statement, limits.lock),
            Patience::Slow => (limits.statement * SLOW, limits.lock * SLOW),
            Patience::Endless => (Duration::ZERO, Duration::ZERO),
        };
        let (statement, lock) = (statement.as_millis().to_string(), lock.as_millis().to_string());
        [
            ("statement_timeout", statement.clone()),
            ("lock_timeout", lock),
            ("idle_in_transaction_session_timeout", statement),
        ]
    }

    fn deadline(self, pool: &Pool) -> Duration {
        match self {
            Patience::Ordinary => pool.limits().deadline(),
            Patience::Slow => pool.limits().deadline() * SLOW,
            Patience::Endless => Duration::from_hours(24 * 365),
        }
    }
}

impl Transaction {
    pub(super) fn sqlite(inner: LocalTransaction, counters: Arc<Counters>, clock: Arc<Clock>) -> Transaction {
        Transaction {
            inner: EngineTransaction::Sqlite(inner),
            counters,
            clock,
            counted: true,
            announcer: None,
            touched: None,
        }
    }

    /// Wraps a connection on which [`begin`] was run.
    pub(super) fn postgres(
        pooled: PooledConnection,
        counters: Arc<Counters>,
        clock: Arc<Clock>,
        announcer: Option<Arc<dyn Announcer>>,
    ) -> Transaction {
        Transaction {
            inner: EngineTransaction::Postgres(pooled),
            counters,
            clock,
            counted: true,
            announcer,
            touched: None,
        }
    }

    /// Marks a transaction of the server itself. Its statements are not counted, because no request
    /// caused them.
    pub(crate) fn uncounted(self) -> Transaction {
        Transaction { counted: false, ..self }
    }

    fn count(&self, statements: u64) {
        if self.counted {
            self.counters.statements_ran(statements);
        }
    }

    /// Sets the encoded changes to repositories that [`commit_each`](Self::commit_each) will
    /// announce.
    pub(crate) fn announce(&mut self, touched: Vec<u8>) {
        self.touched = Some(touched.into());
    }

    /// Runs the script for the database in use, without values.
    pub(super) async fn script(
        &mut self,
        sqlite: &'static str,
        postgres: &'static str,
    ) -> Result<(), StoreError> {
        match &mut self.inner {
            EngineTransaction::Sqlite(local) => local.script(sqlite).await,
            EngineTransaction::Postgres(_) if postgres.is_empty() => Ok(()),
            EngineTransaction::Postgres(pooled) => pooled.simple(postgres.into()).await.map(drop),
        }
    }

    /// Returns whether several processes may have transactions at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.inner, EngineTransaction::Postgres(_))
    }

    /// Returns the time in ms since 1970 by the database's clock, as estimated outside the
    /// transaction.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Returns the lock clause for a SELECT whose rows must not change before the transaction ends.
    /// It is empty on SQLite, which has a single writer.
    pub(crate) fn for_update(&self) -> &'static str {
        match self.inner {
            EngineTransaction::Sqlite(_) => "",
            EngineTransaction::Postgres(_) => " FOR NO KEY UPDATE",
        }
    }

    pub(crate) async fn fetch(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        self.count(1);
        match &mut self.inner {
            EngineTransaction::Sqlite(inner) => {
                let ran = inner.run(sql.into(), values).await?;
                Ok(ran.rows.into_iter().map(Row::Local).collect())
            }
            EngineTransaction::Postgres(pooled) => fetch_on(pooled, sql.into(), values.into(), true).await,
        }
    }

    /// Returns the first row of the answer, if any.
    pub(crate) async fn fetch_one(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch(sql, values).await?.into_iter().next())
    }

    /// Runs a statement and returns the number of changed rows.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        self.count(1);
        match &mut self.inner {
            EngineTransaction::Sqlite(inner) => Ok(inner.run(sql.into(), values).await?.changed),
            EngineTransaction::Postgres(pooled) => {
                pooled.execute(sql.into(), postgres_arguments(values)?, true).await
            }
        }
    }

    /// Runs a statement with `rows` as a list of tuples between `before` and `after`, and returns
    /// the number of changed rows.
    pub(crate) async fn execute_rows<const N: usize>(
        &mut self,
        before: &'static str,
        rows: Vec<[Value; N]>,
        after: &'static str,
    ) -> Result<u64, StoreError> {
        self.execute_each(vec![MultiRow::new(before, rows, after)]).await
    }

    /// Runs statements and returns the rows of each.
    pub(crate) async fn fetch_each(
        &mut self,
        statements: Vec<MultiRow>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut found = Vec::with_capacity(statements.len());
        if matches!(self.inner, EngineTransaction::Sqlite(_)) {
            self.count(parts(&statements));
        }
        if let EngineTransaction::Sqlite(inner) = &mut self.inner {
            return Ok(rows(inner.run_each(statements).await?));
        }
        if let Some(one) = merge_queries(&statements) {
            let mut rows: Vec<Vec<Row>> = statements.iter().map(|_| Vec::new()).collect();
            for row in self.fetch_prepared(one).await? {
                let part = row.columns().unsigned(PART)?;
                if let Some(of_part) = usize::try_from(part).ok().and_then(|part| rows.get_mut(part)) {
                    of_part.push(row);
                }
            }
            return Ok(rows);
        }
        for statement in statements {
            let mut rows = Vec::new();
            for prepared in statement.prepared() {
                rows.extend(self.fetch_prepared(prepared).await?);
            }
            found.push(rows);
        }
        Ok(found)
    }

    /// Runs statements one after the other and returns the total number of changed rows.
    pub(crate) async fn execute_each(&mut self, changes: Vec<MultiRow>) -> Result<u64, StoreError> {
        if matches!(self.inner, EngineTransaction::Sqlite(_)) {
            self.count(parts(&changes));
        }
        if let EngineTransaction::Sqlite(inner) = &mut self.inner {
            return Ok(inner.run_each(changes).await?.iter().map(|ran| ran.changed).sum());
        }
        let mut changed = 0;
        for statement in changes {
            for prepared in statement.prepared() {
                changed += self.execute_prepared(prepared).await?;
            }
        }
        Ok(changed)
    }

    /// Runs statements and commits. The transaction is durable when this returns. The statements
    /// must change different rows, except one marked [`later`](MultiRow::later). The caller may
    /// report the success to clients when the acknowledgement completes.
    pub(crate) async fn commit_each(mut self, changes: Vec<MultiRow>) -> Result<Acknowledgement, Failed> {
        if let EngineTransaction::Sqlite(inner) = self.inner {
            self.counters.statements_ran(parts(&changes));
            let done = inner.run_each_and_commit(changes).await;
            self.counters.commits.fetch_add(1, Ordering::Release);
            return done.map(|_| Acknowledgement::at_once());
        }
        let touched = self.touched.as_deref().map(|touched| [Value::from(touched)]);
        let touched = MultiRow::new(TOUCHED, touched.into_iter().collect(), "");
        for prepared in merge_changes(std::iter::once(touched).chain(changes)) {
            self.execute_prepared(prepared).await.map_err(Failed::Before)?;
        }
        self.commit_unacknowledged().await.map_err(Failed::Commit)
    }

    /// Commits. When this returns, the transaction is durable, and no other server answers from its
    /// cache with older data. After an error, the transaction may have been written.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.commit_unacknowledged().await?.wait().await;
        Ok(())
    }

    /// Commits. The transaction is durable when this returns. Other servers may answer with older
    /// data until the acknowledgement completes.
    async fn commit_unacknowledged(self) -> Result<Acknowledgement, StoreError> {
        let done = match self.inner {
            EngineTransaction::Sqlite(inner) => inner.commit().await.map(|()| Acknowledgement::at_once()),
            EngineTransaction::Postgres(mut pooled) => {
                // `COMMIT` switches the statement timeout off: it would end the wait for the
                // standby and still be reported as success.
                let done = pooled.simple(COMMIT.into()).await;
                pooled.set_in_transaction(done.is_err());
                let committed = done.and_then(|rows| Committed::read(&rows, self.touched));
                committed.map(|committed| match self.announcer {
                    Some(announcer) => announcer.committed(committed),
                    None => wait_for_all_leases(&committed),
                })
            }
        };
        // Counts a failed commit too, because it may have been written.
        self.counters.commits.fetch_add(1, Ordering::Release);
        done
    }

    async fn fetch_prepared(&mut self, prepared: Prepared) -> Result<Vec<Row>, StoreError> {
        self.count(1);
        let Prepared { sql, arguments, keep } = prepared;
        match &mut self.inner {
            EngineTransaction::Sqlite(_) => Err(for_another()),
            EngineTransaction::Postgres(pooled) => fetch_on(pooled, sql.into(), arguments, keep).await,
        }
    }

    async fn execute_prepared(&mut self, prepared: Prepared) -> Result<u64, StoreError> {
        self.count(1);
        let Prepared { sql, arguments, keep } = prepared;
        match &mut self.inner {
            EngineTransaction::Sqlite(_) => Err(for_another()),
            EngineTransaction::Postgres(pooled) => {
                pooled.execute(sql.into(), postgres_arguments(arguments)?, keep).await
            }
        }
    }
}

async fn fetch_on(
    pooled: &mut PooledConnection,
    sql: Sql,
    arguments: Arguments,
    keep: bool,
) -> Result<Vec<Row>, StoreError> {
    let rows = pooled.fetch(sql, postgres_arguments(arguments)?, keep).await?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

fn for_another() -> StoreError {
    StoreError::database("a statement for another database engine")
}

/// Waits for the end of all leases, for transactions without a listener, such as changes of the
/// schema.
fn wait_for_all_leases(committed: &Committed) -> Acknowledgement {
    let longest = committed.holders.iter().map(|holder| max_lease_wait(holder.lease)).max();
    match longest.filter(|_| committed.is_announced()) {
        Some(longest) => Acknowledgement::after(tokio::time::sleep(longest)),
        None => Acknowledgement::at_once(),
    }
}

/// Returns the number of statements with their parts.
fn parts(statements: &[MultiRow]) -> u64 {
    statements.iter().map(|statement| statement.parts() as u64).sum()
}

fn rows(ran: Vec<StatementResult>) -> Vec<Vec<Row>> {
    ran.into_iter().map(|ran| ran.rows.into_iter().map(Row::Local).collect()).collect()
}

/// Begins a transaction on a connection.
pub(super) async fn begin(
    pooled: &mut PooledConnection,
    pool: &Pool,
    patience: Patience,
    purpose: ConnectionPurpose,
) -> Result<(), StoreError> {
    pooled.set_deadline(BEGIN);
    pooled.set_in_transaction(true);
    pooled.simple(patience.begin(pool, purpose).into()).await?;
    pooled.set_deadline(patience.deadline(pool));
    Ok(())
}

/// Returns whether the database gave up waiting for a lock or for the end of the statement. The
/// lock is probably still held.
pub(crate) fn is_blocked(error: &StoreError) -> bool {
    matches!(code(error).as_deref(), Some("55P03" | "57014"))
}

/// Returns whether another process interfered, so that running the same transaction again may
/// succeed: a serialisation failure, a deadlock, or a row deleted since it was read.
pub(crate) fn is_retryable(error: &StoreError) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01" | "23503"))
}

fn code(error: &StoreError) -> Option<String> {
    let StoreError::Unavailable { source, .. } = error else { return None };
    let Some(sqlx::Error::Database(problem)) = source.downcast_ref::<sqlx::Error>() else { return None };
    problem.code().map(std::borrow::Cow::into_owned)
}
