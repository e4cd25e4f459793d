//! The database: statements outside of a transaction, and the beginning of one.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use sqlx::postgres::PgRow;

use super::arrays::{Arguments, postgres_arguments};
use super::clock::{self, Clock};
use super::committed::Announcer;
use super::counters::Counters;
use super::generation::{Generation, Header};
use super::multi_row::{MultiRow, Prepared};
use super::pool::{Pool, Purpose, is_silent};
use super::servers::Servers;
use super::sqlite_readers::{SqliteReaders, Wanted};
use super::sqlite_writer::SqliteWriter;
use super::transaction::{self, Patience, Transaction};
use super::value::{Row, Sql, Value, signed};
use crate::config::DatabaseLimits;
use crate::error::StoreError;

/// The database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database {
    pub(super) engine: Engine,
    counters: Arc<Counters>,
    clock: Arc<Clock>,
    limits: DatabaseLimits,
    /// Who is told of each commit to PostgreSQL.
    announcer: Arc<OnceLock<Arc<dyn Announcer>>>,
}

/// Which database it is.
#[derive(Clone)]
pub(super) enum Engine {
    Sqlite { writer: SqliteWriter, readers: SqliteReaders, header: Option<Header> },
    Postgres(Pool),
}

impl Database {
    pub(super) fn new(engine: Engine, limits: DatabaseLimits) -> Database {
        let announcer = Arc::default();
        Database { engine, counters: Arc::default(), clock: Arc::default(), limits, announcer }
    }

    /// From now on it is told of each commit, where several processes may share the database.
    pub(crate) fn announce_to(&self, announcer: Arc<dyn Announcer>) {
        let _ = self.announcer.set(announcer);
    }

    /// Where a connection beside the pool's is made; none with SQLite.
    pub(crate) fn servers(&self) -> Option<Arc<Servers>> {
        match &self.engine {
            Engine::Sqlite { .. } => None,
            Engine::Postgres(pool) => Some(pool.servers()),
        }
    }

    /// Milliseconds since 1970 by the clock that all servers of this database go by: the database's own, and with SQLite the
    /// process's.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// By how many milliseconds the process's clock is ahead of the database's, or behind it; none with SQLite.
    pub(crate) fn clock_ahead_ms(&self) -> Option<i64> {
        self.clock.ahead_ms()
    }

    pub(crate) fn limits(&self) -> DatabaseLimits {
        self.limits
    }

    pub(super) async fn sync_clock(&self) -> Result<(), StoreError> {
        let Engine::Postgres(pool) = &self.engine else { return Ok(()) };
        let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
        let mut leased = pool.take(Purpose::Read).await?;
        let asked = Instant::now();
        let rows = leased.fetch(sql.into(), postgres_arguments(Vec::<Value>::new())?, true).await?;
        if let Some(row) = rows.into_iter().next().map(Row::Postgres) {
            self.clock.observe(row.columns().int("now")?, asked);
        }
        Ok(())
    }

    /// Starts the task that reads the database's clock periodically, which ends with the database's last handle.
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
                    tracing::debug!(%problem, "the database's clock could not be looked at");
                }
            }
        });
    }

    /// Whether several processes on several machines may share it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    /// Runs a statement outside of a transaction.
    pub(crate) async fn fetch(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        self.count(&sql, &values);
        self.fetch_uncounted(sql, values).await
    }

    /// The same for a statement that looks a few rows up by their keys: with SQLite it runs where it is asked for, if it can.
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
        let rows = readers.fetch_few(sql, values, Wanted::All).await?;
        Ok(rows.into_iter().map(Row::Local).collect())
    }

    /// The same for as many rows as make up `most` bytes in their column `column`, counted from 0. With SQLite reading ends there; for
    /// PostgreSQL `bounded` is the statement that sees to it, with `most` as one value more.
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
        let wanted = Wanted::Within { column, bytes: most };
        let rows = readers.fetch_few(plain.into(), values, wanted).await?;
        Ok(rows.into_iter().map(Row::Local).collect())
    }

    #[cfg_attr(not(test), expect(unused_variables, reason = "what ran is noted for tests alone"))]
    fn count(&self, sql: &Sql, values: &[Value]) {
        self.counters.statement();
        #[cfg(test)]
        if let Ok(mut ran) = self.counters.ran.lock() {
            ran.push((sql.clone().into_owned(), values.to_vec()));
        }
    }

    /// The same for statements that the server runs on its own behalf: no request causes them, so they are not counted.
    pub(crate) async fn fetch_uncounted(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        match &self.engine {
            Engine::Sqlite { readers, .. } => {
                let rows = readers.fetch(sql.into(), values, Wanted::All).await?;
                Ok(rows.into_iter().map(Row::Local).collect())
            }
            Engine::Postgres(pool) => {
                // Boxed, as all that PostgreSQL is asked: with what a statement needs in it each request would be moved about with it.
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

    /// The first row of the answer, if there is one.
    pub(crate) async fn fetch_one(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch(sql, values).await?.into_iter().next())
    }

    /// The same for a statement that looks the row up by its key.
    pub(crate) async fn find(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch_few(sql, values).await?.into_iter().next())
    }

    /// Runs one statement that changes something, in a transaction of its own; how many rows it changed.
    pub(crate) async fn execute(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.execute_within(Patience::Ordinary, sql, values).await
    }

    /// The same for what the upkeep does, which may look at many rows.
    pub(crate) async fn execute_slowly(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let changed = self.execute_within(Patience::Slow, sql, values).await?;
        self.counters.most_changed_slowly.fetch_max(changed, Ordering::Relaxed);
        Ok(changed)
    }

    /// Runs a deletion of `$2` rows at most that are of before `$1`, until it finds no more: few rows at a time, so that no publish
    /// waits long. How many are gone.
    pub(crate) async fn delete_in_pieces(
        &self,
        sql: &'static str,
        before: i64,
        at_once: i64,
    ) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            match self.execute_slowly(sql, vec![Value::from(before), Value::from(at_once)]).await? {
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
        let mut transaction = self.begin_for(Purpose::Write, patience).await?;
        let changed = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        Ok(changed)
    }

    /// A transaction that may write. SQLite has one at a time; others wait for it.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_for(Purpose::Write, Patience::Ordinary).await
    }

    /// The same, on a connection for this purpose, each of its statements with this patience.
    pub(crate) async fn begin_for(
        &self,
        purpose: Purpose,
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
        purpose: Purpose,
        patience: Patience,
    ) -> Result<Transaction, StoreError> {
        let mut leased = pool.take(purpose).await?;
        match transaction::begin(&mut leased, pool, patience, purpose).await {
            // An idle connection may have been closed by the server. Nothing was run on it yet, so it is safe to try another.
            Err(_) if leased.is_reused() && leased.has_ended() => {
                drop(leased);
                leased = pool.take_new(purpose).await?;
                transaction::begin(&mut leased, pool, patience, purpose).await?;
            }
            begun => begun?,
        }
        let (counters, clock) = (Arc::clone(&self.counters), Arc::clone(&self.clock));
        Ok(Transaction::postgres(leased, counters, clock, self.announcer.get().cloned()))
    }

    /// The names of all tables, whoever made them, in their order.
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

    /// The name of the function that finds a text in another: the one word that differs outside of the migrations.
    pub(crate) fn position_function(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite { .. } => "instr",
            Engine::Postgres(_) => "strpos",
        }
    }

    /// The most rows that one of [`execute_slowly`](Self::execute_slowly) has changed: for so long publishes waited.
    #[cfg(test)]
    pub(crate) fn most_changed_slowly(&self) -> u64 {
        self.counters.most_changed_slowly.load(Ordering::Relaxed)
    }

    /// What was read since the last call.
    #[cfg(test)]
    pub(crate) fn take_statements(&self) -> Vec<(String, Vec<Value>)> {
        self.counters.ran.lock().map(|mut ran| std::mem::take(&mut *ran)).unwrap_or_default()
    }

    /// How many statements ran.
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
        // Nothing that was looked up before is given out any more.
        self.counters.commits.fetch_add(1, Ordering::Release);
    }
}

/// Runs a statement that only reads. If an idle connection turns out to be closed, the statement runs again on
/// another: reading twice is safe.
async fn read(pool: &Pool, sql: Sql, arguments: Arguments) -> Result<Vec<PgRow>, StoreError> {
    let mut leased = pool.take(Purpose::Read).await?;
    let again = leased.is_reused().then(|| (sql.clone(), arguments.clone()));
    match leased.fetch(sql, postgres_arguments(arguments)?, true).await {
        Err(problem) if leased.has_ended() && !is_silent(&problem) => {
            let Some((sql, arguments)) = again else { return Err(problem) };
            drop(leased);
            let mut leased = pool.take_new(Purpose::Read).await?;
            leased.fetch(sql, postgres_arguments(arguments)?, true).await
        }
        done => done,
    }
}
