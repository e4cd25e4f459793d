//! Database access: single statements outside a transaction, and the start of transactions.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use sqlx::postgres::PgRow;

use super::arrays::{Arguments, postgres_arguments};
use super::clock::{self, Clock};
use super::committed::Announcer;
use super::counters::Counters;
use super::generation::{Generation, WalIndex};
use super::multi_row::{MultiRow, Prepared};
use super::pool::{ConnectionPurpose, Pool, is_timeout};
use super::servers::Servers;
use super::sqlite_readers::{RowLimit, SqliteReaders};
use super::sqlite_writer::SqliteWriter;
use super::transaction::{self, Patience, Transaction};
use super::value::{Row, Sql, Value, signed};
use crate::config::DatabaseLimits;
use crate::error::StoreError;

#[derive(Clone)]
pub(crate) struct Database {
    pub(super) engine: Engine,
    counters: Arc<Counters>,
    clock: Arc<Clock>,
    limits: DatabaseLimits,
    /// Listener of commits to PostgreSQL.
    announcer: Arc<OnceLock<Arc<dyn Announcer>>>,
}

#[derive(Clone)]
pub(super) enum Engine {
    Sqlite { writer: SqliteWriter, readers: SqliteReaders, header: Option<WalIndex> },
    Postgres(Pool),
}

impl Database {
    pub(super) fn new(engine: Engine, limits: DatabaseLimits) -> Database {
        let announcer = Arc::default();
        Database { engine, counters: Arc::default(), clock: Arc::default(), limits, announcer }
    }

    /// Registers the listener of commits. The database calls it only if several processes may share
    /// the database.
    pub(crate) fn announce_to(&self, announcer: Arc<dyn Announcer>) {
        let _ = self.announcer.set(announcer);
    }

    /// Returns the servers for connections outside the pool; `None` with SQLite.
    pub(crate) fn servers(&self) -> Option<Arc<Servers>> {
        match &self.engine {
            Engine::Sqlite { .. } => None,
            Engine::Postgres(pool) => Some(pool.servers()),
        }
    }

    /// Returns the time in ms since 1970 by the clock that all servers of this database share: the
    /// database's own, or the process's with SQLite.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Returns the lead of the process's clock over the database's in ms (negative if it is
    /// behind); `None` with SQLite.
    pub(crate) fn clock_ahead_ms(&self) -> Option<i64> {
        self.clock.ahead_ms()
    }

    pub(crate) fn limits(&self) -> DatabaseLimits {
        self.limits
    }

    pub(super) async fn sync_clock(&self) -> Result<(), StoreError> {
        let Engine::Postgres(pool) = &self.engine else { return Ok(()) };
        let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
        let mut pooled = pool.take(ConnectionPurpose::Read).await?;
        let started = Instant::now();
        let rows = pooled.fetch(sql.into(), postgres_arguments(Vec::<Value>::new())?, true).await?;
        if let Some(row) = rows.into_iter().next().map(Row::Postgres) {
            self.clock.observe(row.columns().int("now")?, started);
        }
        Ok(())
    }

    /// Starts a task that reads the database's clock periodically. It ends with the last handle of
    /// the database.
    pub(super) fn sync_clock_periodically(&self) {
        let Engine::Postgres(pool) = &self.engine else { return };
        let (pool, counters) = (pool.clone(), Arc::downgrade(&self.counters));
        let (clock, limits) = (Arc::clone(&self.clock), self.limits);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(clock::EVERY).await;
                let Some(counters) = counters.upgrade() else { return };
                let (engine, clock) = (Engine::Postgres(pool.clone()), Arc::clone(&clock));
                let database = Database { engine, counters, clock, limits, announcer: Arc::default() };
                if let Err(problem) = database.sync_clock().await {
                    tracing::debug!(%problem, "could not read the database's clock");
                }
            }
        });
    }

    /// Returns whether processes on several machines may share the database.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    pub(crate) async fn fetch(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        self.count(&sql, &values);
        self.fetch_uncounted(sql, values).await
    }

    /// Runs a statement that looks up a few rows by their keys. With SQLite, it runs on the calling
    /// thread if possible.
    pub(crate) async fn fetch_few(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        self.count(&sql, &values);
        let Engine::Sqlite { readers, .. } = &self.engine else {
            return self.fetch_uncounted(sql, values).await;
        };
        let rows = readers.fetch_few(sql, values, RowLimit::All).await?;
        Ok(rows.into_iter().map(Row::Local).collect())
    }

    /// Returns the first rows whose column `column` (counted from 0) has at most `most` bytes in
    /// all. SQLite stops reading at that limit. PostgreSQL runs `bounded`, a statement with the
    /// limit as one more value.
    pub(crate) async fn fetch_within(
        &self,
        [plain, bounded]: [&'static str; 2],
        mut values: Vec<Value>,
        column: usize,
        most: u64,
    ) -> Result<Vec<Row>, StoreError> {
        let Engine::Sqlite { readers, .. } = &self.engine else {
            values.push(signed(most).into());
            return self.fetch(bounded, values).await;
        };
        self.count(&plain.into(), &values);
        let limit = RowLimit::Within { column, bytes: most };
        let rows = readers.fetch_few(plain.into(), values, limit).await?;
        Ok(rows.into_iter().map(Row::Local).collect())
    }

    #[cfg_attr(not(test), expect(unused_variables, reason = "only tests record the statements that ran"))]
    fn count(&self, sql: &Sql, values: &[Value]) {
        self.counters.statement();
        #[cfg(test)]
        if let Ok(mut ran) = self.counters.ran.lock() {
            ran.push((sql.clone().into_owned(), values.to_vec()));
        }
    }

    /// Runs a statement that the server issues for itself. Does not count the statement, because no
    /// request caused it.
    pub(crate) async fn fetch_uncounted(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        match &self.engine {
            Engine::Sqlite { readers, .. } => {
                let rows = readers.fetch(sql.into(), values, RowLimit::All).await?;
                Ok(rows.into_iter().map(Row::Local).collect())
            }
            Engine::Postgres(pool) => {
                // Boxed like every PostgreSQL query. Otherwise each request's future would contain
                // the state of this future, and moving it would cost more.
                let rows = Box::pin(read(pool, sql.into(), values.into())).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// Runs a multi-row statement that only reads.
    pub(crate) async fn fetch_multi_row(&self, statement: MultiRow) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        match &self.engine {
            Engine::Sqlite { .. } => {
                for (sql, values, _) in statement.numbered() {
                    rows.extend(self.fetch(sql, values).await?);
                }
            }
            Engine::Postgres(pool) => {
                for Prepared { sql, arguments, .. } in statement.prepared() {
                    self.counters.statement();
                    let found = Box::pin(read(pool, sql.into(), arguments)).await?;
                    rows.extend(found.into_iter().map(Row::Postgres));
                }
            }
        }
        Ok(rows)
    }

    /// Returns the first row of the answer, if any.
    pub(crate) async fn fetch_one(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch(sql, values).await?.into_iter().next())
    }

    /// Returns the row that a statement looks up by its key, if it exists.
    pub(crate) async fn find(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch_few(sql, values).await?.into_iter().next())
    }

    /// Runs one changing statement in its own transaction and returns the number of changed rows.
    pub(crate) async fn execute(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.execute_within(Patience::Ordinary, sql, values).await
    }

    /// Same as [`execute`](Self::execute) for maintenance, which may read many rows.
    pub(crate) async fn execute_maintenance(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let changed = self.execute_within(Patience::Slow, sql, values).await?;
        self.counters.most_changed_by_maintenance.fetch_max(changed, Ordering::Relaxed);
        Ok(changed)
    }

    /// Repeats a deletion of at most `$2` rows older than `$1` until no more are found, and returns
    /// the number of deleted rows. Small batches keep publishes from waiting long.
    pub(crate) async fn delete_in_pieces(
        &self,
        sql: &'static str,
        before: i64,
        at_once: i64,
    ) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            match self.execute_maintenance(sql, vec![Value::from(before), Value::from(at_once)]).await? {
                0 => return Ok(gone),
                some => gone += some,
            }
        }
    }

    async fn execute_within(
        &self,
        patience: Patience,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.begin_for(ConnectionPurpose::Write, patience).await?;
        let changed = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        Ok(changed)
    }

    /// Begins a transaction that may write. SQLite has one such transaction at a time; further
    /// callers wait for its end.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_for(ConnectionPurpose::Write, Patience::Ordinary).await
    }

    /// Begins a transaction on a connection for this purpose. `patience` bounds each of its
    /// statements.
    pub(crate) async fn begin_for(
        &self,
        purpose: ConnectionPurpose,
        patience: Patience,
    ) -> Result<Transaction, StoreError> {
        match &self.engine {
            Engine::Sqlite { writer, .. } => Ok(Transaction::sqlite(
                writer.begin().await?,
                Arc::clone(&self.counters),
                Arc::clone(&self.clock),
            )),
            Engine::Postgres(pool) => Box::pin(self.begin_on(pool, purpose, patience)).await,
        }
    }

    async fn begin_on(
        &self,
        pool: &Pool,
        purpose: ConnectionPurpose,
        patience: Patience,
    ) -> Result<Transaction, StoreError> {
        let mut pooled = pool.take(purpose).await?;
        match transaction::begin(&mut pooled, pool, patience, purpose).await {
            // The server may have closed an idle connection. Nothing ran on it yet, so another
            // connection can be tried safely.
            Err(_) if pooled.is_reused() && pooled.has_ended() => {
                drop(pooled);
                pooled = pool.take_new(purpose).await?;
                transaction::begin(&mut pooled, pool, patience, purpose).await?;
            }
            begun => begun?,
        }
        let (counters, clock) = (Arc::clone(&self.counters), Arc::clone(&self.clock));
        Ok(Transaction::postgres(pooled, counters, clock, self.announcer.get().cloned()))
    }

    /// Returns the sorted names of all tables, including foreign ones.
    pub(crate) async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        let sql = if self.is_shared() {
            "SELECT CAST(table_name AS TEXT) AS name FROM information_schema.tables \
             WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1"
        } else {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1"
        };
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.iter().map(|row| row.columns().text("name")).collect()
    }

    /// Returns the name of the SQL function that finds one text in another. This function's name is
    /// the only difference between the databases' SQL outside the migrations.
    pub(crate) fn position_function(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite { .. } => "instr",
            Engine::Postgres(_) => "strpos",
        }
    }

    /// Returns the largest number of rows changed by one call of
    /// [`execute_maintenance`](Self::execute_maintenance). Publishes had to wait for these rows.
    #[cfg(test)]
    pub(crate) fn most_changed_by_maintenance(&self) -> u64 {
        self.counters.most_changed_by_maintenance.load(Ordering::Relaxed)
    }

    /// Returns the statements read since the last call.
    #[cfg(test)]
    pub(crate) fn take_statements(&self) -> Vec<(String, Vec<Value>)> {
        self.counters.ran.lock().map(|mut ran| std::mem::take(&mut *ran)).unwrap_or_default()
    }

    /// Returns the number of statements run.
    pub(crate) fn statements(&self) -> u64 {
        self.counters.statements.load(Ordering::Relaxed)
    }

    pub(crate) fn generation(&self) -> Option<Generation> {
        match &self.engine {
            Engine::Sqlite { header, .. } => {
                Some(Generation::read(header.as_ref(), self.counters.commits.load(Ordering::Acquire)))
            }
            Engine::Postgres(_) => None,
        }
    }

    pub(crate) async fn close(&self) {
        match &self.engine {
            Engine::Sqlite { writer, readers, .. } => {
                readers.close().await;
                writer.close().await;
            }
            Engine::Postgres(pool) => pool.close().await,
        }
        // Invalidates all earlier look-ups.
        self.counters.commits.fetch_add(1, Ordering::Release);
    }
}

/// Runs a reading statement. If an idle connection turns out to be closed, it runs again on another
/// one. That is safe because reads have no effects.
async fn read(pool: &Pool, sql: Sql, arguments: Arguments) -> Result<Vec<PgRow>, StoreError> {
    let mut pooled = pool.take(ConnectionPurpose::Read).await?;
    let again = pooled.is_reused().then(|| (sql.clone(), arguments.clone()));
    match pooled.fetch(sql, postgres_arguments(arguments)?, true).await {
        Err(problem) if pooled.has_ended() && !is_timeout(&problem) => {
            let Some((sql, arguments)) = again else { return Err(problem) };
            drop(pooled);
            let mut pooled = pool.take_new(ConnectionPurpose::Read).await?;
            pooled.fetch(sql, postgres_arguments(arguments)?, true).await
        }
        done => done,
    }
}
