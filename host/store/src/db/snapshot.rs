//! A connection of its own on which the database stands still: what it reads is the state of one moment, whatever is written
//! meanwhile. Nothing waits for it, and it waits for nothing.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::arrays::postgres_arguments;
use super::database::{Database, Engine};
use super::value::{Row, Sql, Value, sqlite_arguments};
use crate::error::StoreError;
use crate::sqlite::sqlite_options;

/// What makes PostgreSQL stand still for this connection, for as long as it takes.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// The moment is that of the first statement.
const FIRST: &str = "SELECT MAX(step) AS step FROM migrations";

/// A read transaction. It ends when it is dropped.
pub(crate) enum StandingStill {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Database {
    /// Begins one; and how many steps of the schema were taken at that moment. `url` is the database's.
    pub(crate) async fn stand_still(&self, url: &str) -> Result<(StandingStill, u64), StoreError> {
        let mut still = match &self.engine {
            Engine::Sqlite { .. } => {
                let options = sqlite_options(url)?.create_if_missing(false).pragma("query_only", "ON");
                let mut connection = options.connect().await.map_err(StoreError::database)?;
                sqlx::raw_sql("BEGIN").execute(&mut connection).await.map_err(StoreError::database)?;
                StandingStill::Sqlite(connection)
            }
            Engine::Postgres(pool) => {
                let mut connection = pool.servers().connect().await.map_err(StoreError::database)?;
                sqlx::raw_sql(BEGIN).execute(&mut connection).await.map_err(StoreError::database)?;
                StandingStill::Postgres(connection)
            }
        };
        let first = still.rows(FIRST.into(), Vec::new())?.try_next().await?;
        let step = first.map_or(Ok(0), |row| row.columns().unsigned("step"))?;
        Ok((still, step))
    }
}

impl StandingStill {
    /// The rows of a statement, as they are read.
    pub(crate) fn rows(
        &mut self,
        sql: Sql,
        values: Vec<Value>,
    ) -> Result<BoxStream<'_, Result<Row, StoreError>>, StoreError> {
        let sql = AssertSqlSafe(sql);
        Ok(match self {
            StandingStill::Sqlite(connection) => {
                let query = sqlx::query_with(sql, sqlite_arguments(values)?);
                query.fetch(connection).map(|row| row.map(Row::Sqlite).map_err(StoreError::database)).boxed()
            }
            StandingStill::Postgres(connection) => {
                let query = sqlx::query_with(sql, postgres_arguments(values)?);
                query
                    .fetch(connection)
                    .map(|row| row.map(Row::Postgres).map_err(StoreError::database))
                    .boxed()
            }
        })
    }

    /// Lets the database go on.
    pub(crate) async fn end(self) {
        let _ = match self {
            StandingStill::Sqlite(connection) => connection.close().await,
            StandingStill::Postgres(connection) => connection.close().await,
        };
    }
}
