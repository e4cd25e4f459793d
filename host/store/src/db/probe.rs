//! Health check of the database. A pool that is exhausted and a database that is down look the same
//! to a caller: no connection in time. So the check also tries a connection outside the pool.

use std::time::Duration;

use sqlx::Connection;

use super::database::{Database, Engine};
use super::pool::Connections;
use super::servers::Servers;
use super::sqlite_readers::SqliteReaders;
use crate::error::StoreError;

/// Time limit for a probe through the pool.
const POOL: Duration = Duration::from_secs(1);
/// Time limit for a probe on a separate connection.
const DIRECT: Duration = Duration::from_secs(2);

/// Health of a database that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseHealth {
    /// The database answers without delay.
    Well,
    /// The database answers, but all connections of this server are in use.
    Busy,
}

impl Database {
    /// Runs a trivial query. `Unavailable` has the database's error, or states that the database
    /// did not answer.
    pub(crate) async fn probe(&self) -> Result<DatabaseHealth, StoreError> {
        let answer = tokio::time::timeout(POOL, self.fetch_uncounted("SELECT 1", vec![])).await;
        match (answer, &self.engine) {
            (Ok(Ok(_)), _) => Ok(DatabaseHealth::Well),
            (Ok(Err(error)), Engine::Sqlite { .. }) => Err(error),
            (Err(_), Engine::Sqlite { .. }) => Ok(DatabaseHealth::Busy),
            (_, Engine::Postgres(pool)) => match ping_directly(&pool.servers()).await {
                Ok(()) => Ok(DatabaseHealth::Busy),
                Err(error) => Err(StoreError::database(error)),
            },
        }
    }

    /// Returns the present numbers of connections.
    pub(crate) fn connections(&self) -> Connections {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match &self.engine {
            Engine::Sqlite { readers, writer, .. } => {
                let (open, idle) = readers.connections();
                Connections {
                    open: number(open + 1),
                    idle: number(idle + usize::from(writer.is_idle())),
                    most: number(SqliteReaders::most() + 1),
                }
            }
            Engine::Postgres(pool) => pool.connections(),
        }
    }
}

/// Connects outside the pool and runs a trivial query.
async fn ping_directly(servers: &Servers) -> Result<(), sqlx::Error> {
    let query = async {
        let mut connection = servers.connect().await?;
        connection.ping().await?;
        connection.close().await
    };
    let answered = tokio::time::timeout(DIRECT, query).await;
    answered.unwrap_or_else(|_| {
        let silent = format!("it did not answer within {DIRECT:?}");
        Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, silent)))
    })
}
