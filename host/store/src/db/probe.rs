//! Whether the database answers, and what it says when it does not. A pool whose connections are all in use and one whose database
//! is away look the same from within: no connection came in time. So it is asked beside the pool.

use std::time::Duration;

use sqlx::Connection;

use super::database::{Database, Engine};
use super::pool::Connections;
use super::servers::Servers;
use super::sqlite_readers::SqliteReaders;
use crate::error::StoreError;

/// How long the pool may take to answer a probe.
const POOL: Duration = Duration::from_secs(1);
/// How long a connection of its own may take.
const DIRECT: Duration = Duration::from_secs(2);

/// How a database answers that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// At once.
    Well,
    /// It does, but all of this server's connections are in use.
    Busy,
}

impl Database {
    /// Asks it for next to nothing. `Unavailable` says what it said, or that it said nothing.
    pub(crate) async fn probe(&self) -> Result<Answering, StoreError> {
        let asked = tokio::time::timeout(POOL, self.fetch_uncounted("SELECT 1", vec![])).await;
        match (asked, &self.engine) {
            (Ok(Ok(_)), _) => Ok(Answering::Well),
            (Ok(Err(error)), Engine::Sqlite { .. }) => Err(error),
            (Err(_), Engine::Sqlite { .. }) => Ok(Answering::Busy),
            (_, Engine::Postgres(pool)) => match ask(&pool.servers()).await {
                Ok(()) => Ok(Answering::Busy),
                Err(error) => Err(StoreError::database(error)),
            },
        }
    }

    /// The connections there are at the moment.
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

/// Makes a connection of its own and asks for next to nothing.
async fn ask(servers: &Servers) -> Result<(), sqlx::Error> {
    let asking = async {
        let mut connection = servers.connect().await?;
        connection.ping().await?;
        connection.close().await
    };
    let answered = tokio::time::timeout(DIRECT, asking).await;
    answered.unwrap_or_else(|_| {
        let silent = format!("it did not answer within {DIRECT:?}");
        Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, silent)))
    })
}
