//! Limits for statements that write data of one repository outside of the writer, such as upload
//! sessions and pins.
//!
//! On PostgreSQL such a statement waits while another process has locked the repository, and holds
//! a connection meanwhile. So only a few statements of one repository wait at a time. Once the
//! database gives up waiting for a lock, further statements of that repository fail at once for a
//! while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::db::{Database, Sql, Value, is_blocked};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Concurrent statements of one repository: a third of the connections for them.
const AT_ONCE: usize = 2;
/// Number of limits above which the limits of idle repositories are dropped.
const MAX_IDLE: usize = 1000;

#[derive(Default)]
pub(crate) struct RepositoryLimits(Mutex<HashMap<RepositoryId, Arc<RepositoryLimit>>>);

struct RepositoryLimit {
    turns: Semaphore,
    closed_until: Mutex<Option<Instant>>,
}

impl Default for RepositoryLimit {
    fn default() -> RepositoryLimit {
        RepositoryLimit { turns: Semaphore::new(AT_ONCE), closed_until: Mutex::default() }
    }
}

impl RepositoryLimit {
    fn check(&self) -> Result<(), StoreError> {
        let closed_until = *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        if closed_until.is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::database("another process has locked the repository"));
        }
        Ok(())
    }
}

impl RepositoryLimits {
    fn of(&self, repository: RepositoryId) -> Arc<RepositoryLimit> {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limits.len() > MAX_IDLE {
            limits.retain(|_, limit| Arc::strong_count(limit) > 1 || limit.check().is_err());
        }
        Arc::clone(limits.entry(repository).or_default())
    }

    /// Runs one statement that writes data of this repository; returns the number of changed rows.
    /// `Unavailable` also if another process has locked the repository.
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
        let limit = self.of(repository);
        limit.check()?;
        let turn = limit.turns.acquire().await.map_err(StoreError::database)?;
        limit.check()?;
        let done = database.execute(sql, values).await;
        if done.as_ref().is_err_and(is_blocked) {
            let until = Instant::now() + database.limits().lock * 2;
            *limit.closed_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
        drop(turn);
        done
    }
}
