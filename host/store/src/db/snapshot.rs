//! Read transactions on a separate connection, which see the database as of one moment. They
//! neither block other statements nor wait for them.

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

/// Begins the snapshot in PostgreSQL, without time limits.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// First statement; it fixes the moment of the snapshot.
const FIRST: &str = "SELECT MAX(step) AS step FROM migrations";
/// Rows passed on at a time. Each may contain a small blob.
const PIECE: usize = 32;

/// A read transaction, which ends when it is dropped.
pub(crate) enum SnapshotReader {
    Sqlite(Arc<Mutex<Connection>>),
    Postgres(PgConnection),
}

impl Database {
    /// Begins a snapshot and returns it with its schema step. `url` is that of the database.
    pub(crate) async fn begin_snapshot(&self, url: &str) -> Result<(SnapshotReader, u64), StoreError> {
        let mut snapshot = match &self.engine {
            Engine::Sqlite { .. } => {
                let file = sqlite_file(url)?;
                let begun = spawn_blocking(move || {
                    let connection = open_reader(&file)?;
                    connection.execute_batch("BEGIN").map(|()| connection)
                });
                let connection = begun.await.map_err(StoreError::database)?;
                SnapshotReader::Sqlite(Arc::new(Mutex::new(connection.map_err(StoreError::database)?)))
            }
            Engine::Postgres(pool) => {
                let mut connection = pool.servers().connect().await.map_err(StoreError::database)?;
                sqlx::raw_sql(BEGIN).execute(&mut connection).await.map_err(StoreError::database)?;
                SnapshotReader::Postgres(connection)
            }
        };
        let first = snapshot.rows(FIRST.into(), Vec::new())?.try_next().await?;
        let step = first.map_or(Ok(0), |row| row.columns().unsigned("step"))?;
        Ok((snapshot, step))
    }
}

impl SnapshotReader {
    /// Streams the rows of a statement.
    pub(crate) fn rows(
        &mut self,
        sql: Sql,
        values: Vec<Value>,
    ) -> Result<BoxStream<'_, Result<Row, StoreError>>, StoreError> {
        Ok(match self {
            SnapshotReader::Sqlite(connection) => of_file(Arc::clone(connection), sql, values).boxed(),
            SnapshotReader::Postgres(connection) => {
                let query = sqlx::query_with(AssertSqlSafe(sql), postgres_arguments(values)?);
                query
                    .fetch(connection)
                    .map(|row| row.map(Row::Postgres).map_err(StoreError::database))
                    .boxed()
            }
        })
    }

    pub(crate) async fn end(self) {
        match self {
            SnapshotReader::Sqlite(connection) => {
                let _ = spawn_blocking(move || drop(connection)).await;
            }
            SnapshotReader::Postgres(connection) => {
                let _ = connection.close().await;
            }
        }
    }
}

/// Message of the reading thread.
enum ReaderMessage {
    Rows(Vec<Row>),
    End(rusqlite::Result<()>),
}

/// Streams the rows of a statement that runs on its own thread. Dropping the stream stops the
/// reading.
fn of_file(
    connection: Arc<Mutex<Connection>>,
    sql: Sql,
    values: Vec<Value>,
) -> impl futures::Stream<Item = Result<Row, StoreError>> {
    let (sender, receiver) = mpsc::channel(2);
    spawn_blocking(move || {
        let ended = read(&connection, &sql, &values, &sender);
        let _ = sender.blocking_send(ReaderMessage::End(ended));
    });
    let pieces = futures::stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(ReaderMessage::Rows(rows)) => Some((Ok(rows), Some(receiver))),
            Some(ReaderMessage::End(Ok(()))) => None,
            Some(ReaderMessage::End(Err(problem))) => Some((Err(StoreError::database(problem)), None)),
            // The thread ended without its last message, so rows may be missing. The stream must
            // not look complete.
            None => Some((Err(StoreError::database("the reading thread has ended")), None)),
        }
    });
    pieces.map_ok(|rows| futures::stream::iter(rows.into_iter().map(Ok))).try_flatten()
}

fn read(
    connection: &Mutex<Connection>,
    sql: &str,
    values: &[Value],
    sender: &mpsc::Sender<ReaderMessage>,
) -> rusqlite::Result<()> {
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut statement = connection.prepare(sql)?;
    let mut piece = Vec::with_capacity(PIECE);
    each_row(&mut statement, values, |row| {
        piece.push(Row::Local(row));
        piece.len() < PIECE || sender.blocking_send(ReaderMessage::Rows(std::mem::take(&mut piece))).is_ok()
    })?;
    let _ = sender.blocking_send(ReaderMessage::Rows(piece));
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
    async fn a_stream_returns_all_rows_or_as_many_as_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig::new(folder.path());
        let database = Database::open(&config).await.unwrap();
        let (mut snapshot, step) = database.begin_snapshot(&config.database_url).await.unwrap();
        assert!(step > 0);
        assert!(snapshot.rows("SELECT 1 WHERE 1 = 0".into(), values![]).unwrap().next().await.is_none());
        for count in [1, 31, 32, 33, 1000] {
            let rows = snapshot.rows(MANY.into(), values![count]).unwrap();
            let read: Vec<i64> = rows.map(|row| row.unwrap().columns().int("a").unwrap()).collect().await;
            assert_eq!(read, (1..=count).collect::<Vec<i64>>());
        }
        let few: Vec<_> = snapshot.rows(MANY.into(), values![1_000_000]).unwrap().take(3).collect().await;
        assert_eq!(few.len(), 3);
        assert!(snapshot.rows("SELECT nothing".into(), values![]).unwrap().next().await.unwrap().is_err());
        snapshot.end().await;
        database.close().await;
    }
}
