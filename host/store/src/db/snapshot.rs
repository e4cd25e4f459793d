//! A connection of its own on which the database stands still: what it reads is the state of one moment, whatever is written
//! meanwhile. Nothing waits for it, and it waits for nothing.

use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use rusqlite::Connection;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::arrays::postgres_arguments;
use super::database::{Database, Engine};
use super::local_statement::each_row;
use super::value::{Row, Sql, Value};
use crate::error::StoreError;
use crate::sqlite::{open_reader, sqlite_file};

/// What makes PostgreSQL stand still for this connection, for as long as it takes.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// The moment is that of the first statement.
const FIRST: &str = "SELECT MAX(step) AS step FROM migrations";
/// Rows that are handed over at once, each of which may hold a small blob.
const PIECE: usize = 32;

/// A read transaction. It ends when it is dropped.
pub(crate) enum StandingStill {
    Sqlite(Arc<Mutex<Connection>>),
    Postgres(PgConnection),
}

impl Database {
    /// Begins one; and how many steps of the schema were taken at that moment. `url` is the database's.
    pub(crate) async fn stand_still(&self, url: &str) -> Result<(StandingStill, u64), StoreError> {
        let mut still = match &self.engine {
            Engine::Sqlite { .. } => {
                let file = sqlite_file(url)?;
                let begun = spawn_blocking(move || {
                    let connection = open_reader(&file)?;
                    connection.execute_batch("BEGIN").map(|()| connection)
                });
                let connection = begun.await.map_err(StoreError::database)?;
                StandingStill::Sqlite(Arc::new(Mutex::new(connection.map_err(StoreError::database)?)))
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
        Ok(match self {
            StandingStill::Sqlite(connection) => of_file(Arc::clone(connection), sql, values).boxed(),
            StandingStill::Postgres(connection) => {
                let query = sqlx::query_with(AssertSqlSafe(sql), postgres_arguments(values)?);
                query
                    .fetch(connection)
                    .map(|row| row.map(Row::Postgres).map_err(StoreError::database))
                    .boxed()
            }
        })
    }

    /// Lets the database go on.
    pub(crate) async fn end(self) {
        match self {
            StandingStill::Sqlite(connection) => {
                let _ = spawn_blocking(move || drop(connection)).await;
            }
            StandingStill::Postgres(connection) => {
                let _ = connection.close().await;
            }
        }
    }
}

/// What the thread that reads hands over.
enum Read {
    Rows(Vec<Row>),
    End(rusqlite::Result<()>),
}

/// The rows of a statement, which is run on a thread of its own. Who wants no more of them drops this.
fn of_file(
    connection: Arc<Mutex<Connection>>,
    sql: Sql,
    values: Vec<Value>,
) -> impl futures::Stream<Item = Result<Row, StoreError>> {
    let (sender, receiver) = mpsc::channel(2);
    spawn_blocking(move || {
        let ended = read(&connection, &sql, &values, &sender);
        let _ = sender.blocking_send(Read::End(ended));
    });
    let pieces = futures::stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Read::Rows(rows)) => Some((Ok(rows), Some(receiver))),
            Some(Read::End(Ok(()))) => None,
            Some(Read::End(Err(problem))) => Some((Err(StoreError::database(problem)), None)),
            // Never taken for the end: there would be rows missing.
            None => Some((Err(StoreError::database("the thread that read has ended")), None)),
        }
    });
    pieces.map_ok(|rows| futures::stream::iter(rows.into_iter().map(Ok))).try_flatten()
}

fn read(
    connection: &Mutex<Connection>,
    sql: &str,
    values: &[Value],
    sender: &mpsc::Sender<Read>,
) -> rusqlite::Result<()> {
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut statement = connection.prepare(sql)?;
    let mut piece = Vec::with_capacity(PIECE);
    each_row(&mut statement, values, |row| {
        piece.push(Row::Local(row));
        piece.len() < PIECE || sender.blocking_send(Read::Rows(std::mem::take(&mut piece))).is_ok()
    })?;
    let _ = sender.blocking_send(Read::Rows(piece));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;
    use crate::db::values;

    const MANY: &str =
        "WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < $1) SELECT a FROM n";

    #[tokio::test]
    async fn all_rows_are_read_or_as_many_as_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig::new(folder.path());
        let database = Database::open(&config).await.unwrap();
        let (mut still, step) = database.stand_still(&config.database_url).await.unwrap();
        assert!(step > 0);
        assert!(still.rows("SELECT 1 WHERE 1 = 0".into(), values![]).unwrap().next().await.is_none());
        for count in [1, 31, 32, 33, 1000] {
            let rows = still.rows(MANY.into(), values![count]).unwrap();
            let read: Vec<i64> = rows.map(|row| row.unwrap().columns().int("a").unwrap()).collect().await;
            assert_eq!(read, (1..=count).collect::<Vec<i64>>());
        }
        let few: Vec<_> = still.rows(MANY.into(), values![1_000_000]).unwrap().take(3).collect().await;
        assert_eq!(few.len(), 3);
        assert!(still.rows("SELECT nothing".into(), values![]).unwrap().next().await.unwrap().is_err());
        still.end().await;
        database.close().await;
    }
}
