//! What requests write beside the writer to what belongs to one repository: a session of uploading, a lease. On PostgreSQL such a
//! statement waits while another process has locked the repository, and holds a connection meanwhile; so only a few of one
//! repository wait at one time, and once the database gave up waiting the next are told so without waiting, for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::db::{Database, Sql, Value, is_blocked};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Statements of one repository at one time: a third of the connections that there are for them.
const AT_ONCE: usize = 2;
/// Gates of repositories for which nothing goes on are forgotten when there are more.
const KEPT: usize = 1000;

/// The gates of all repositories.
#[derive(Default)]
pub(crate) struct Gates(Mutex<HashMap<RepositoryId, Arc<Gate>>>);

struct Gate {
    turns: Semaphore,
    closed_until: Mutex<Option<Instant>>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { turns: Semaphore::new(AT_ONCE), closed_until: Mutex::default() }
    }
}

impl Gate {
    fn check(&self) -> Result<(), StoreError> {
        let closed_until = *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        if closed_until.is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::database("another process has locked the repository"));
        }
        Ok(())
    }
}

impl Gates {
    fn of(&self, repository: RepositoryId) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() > KEPT {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1 || gate.check().is_err());
        }
        Arc::clone(gates.entry(repository).or_default())
    }

    /// Runs one statement that writes what belongs to this repository; how many rows it changed. `Unavailable` also when another
    /// process has locked the repository.
    pub(crate) async fn execute(
        &self,
        database: &Database,
        repository: RepositoryId,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        if !database.is_shared() {
            return database.execute(sql, values).await;
        }
        let gate = self.of(repository);
        gate.check()?;
        let turn = gate.turns.acquire().await.map_err(StoreError::database)?;
        gate.check()?;
        let done = database.execute(sql, values).await;
        if done.as_ref().is_err_and(is_blocked) {
            let until = Instant::now() + database.limits().lock * 2;
            *gate.closed_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
        drop(turn);
        done
    }
}
