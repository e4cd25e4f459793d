//! SQLite and PostgreSQL behind one small type: one text of SQL, `$1` placeholders, times as BIGINT ms, truth as 0 and 1.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{AssertSqlSafe, PgPool, SqlitePool};

use crate::config::StoreConfig;
use crate::error::StoreError;

mod generation;
mod migrate;
mod open;
mod over_rows;
#[cfg(test)]
mod plans;
mod transaction;
mod value;

pub use generation::Generation;
pub(crate) use over_rows::{OverRows, placeholders};
pub(crate) use transaction::{Transaction, is_retryable};
pub(crate) use value::{Columns, Row, Value, signed, values};

/// A statement: never holds what came from outside, which is bound.
pub(crate) type Sql = Cow<'static, str>;

/// The database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    counters: Arc<Counters>,
}

#[derive(Clone)]
enum Engine {
    Sqlite { writer: SqlitePool, readers: SqlitePool, header: Option<generation::Header> },
    Postgres(PgPool),
}

struct Counters {
    statements: AtomicU64,
    commits: AtomicU64,
    /// The statements again, for the metrics of the process.
    metric: metrics::Counter,
}

impl Default for Counters {
    fn default() -> Counters {
        let metric = metrics::counter!("packhouse_store_statements_total");
        Counters { statements: AtomicU64::new(0), commits: AtomicU64::new(0), metric }
    }
}

impl Counters {
    fn statement(&self) {
        self.statements_ran(1);
    }

    fn statements_ran(&self, count: u64) {
        self.statements.fetch_add(count, Ordering::Relaxed);
        self.metric.increment(count);
    }
}

impl Database {
    /// Connects and brings the schema up to date.
    pub(crate) async fn open(config: &StoreConfig) -> Result<Database, StoreError> {
        let engine = open::connect(config).await?;
        let mut database = Database { engine, counters: Arc::default() };
        migrate::migrate(&database).await?;
        // After the migration: the file is certain to be there then.
        if let Engine::Sqlite { header, .. } = &mut database.engine {
            *header = generation::Header::open(&config.database_url)?;
        }
        Ok(database)
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
        self.counters.statement();
        let sql = AssertSqlSafe(sql.into());
        match &self.engine {
            Engine::Sqlite { readers, .. } => {
                let query = sqlx::query_with(sql, value::sqlite_arguments(values)?);
                let rows = query.fetch_all(readers).await.map_err(StoreError::database)?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Engine::Postgres(pool) => {
                let query = sqlx::query_with(sql, value::postgres_arguments(values)?);
                let rows = query.fetch_all(pool).await.map_err(StoreError::database)?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn fetch_one(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch(sql, values).await?.into_iter().next())
    }

    /// Runs one statement that changes something, in a transaction of its own; how many rows it changed.
    pub(crate) async fn execute(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let changed = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        Ok(changed)
    }

    /// A transaction that may write. SQLite has one at a time: whoever holds one keeps others waiting.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        match &self.engine {
            Engine::Sqlite { writer, .. } => {
                let inner = writer.begin_with("BEGIN IMMEDIATE").await.map_err(StoreError::database)?;
                Ok(Transaction::sqlite(inner, Arc::clone(&self.counters)))
            }
            Engine::Postgres(pool) => {
                let inner = pool.begin().await.map_err(StoreError::database)?;
                Ok(Transaction::postgres(inner, Arc::clone(&self.counters)))
            }
        }
    }

    /// The name of the function that finds a text in another: the one word that differs outside of the migrations.
    pub(crate) fn position_function(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite { .. } => "instr",
            Engine::Postgres(_) => "strpos",
        }
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
    }
}
