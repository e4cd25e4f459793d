//! One server at a time on one SQLite database. The lock is the operating system's: it ends with the process, however
//! that ends.

use std::fs::{File, TryLockError};

use anyhow::{Context, bail};

use packhouse_config::Config;

/// Locks the data folder; the lock lasts as long as the value. With PostgreSQL any number of servers share one database,
/// and nothing is locked.
pub(crate) fn take(config: &Config) -> anyhow::Result<Option<File>> {
    let data = &config.data;
    if !config.store.database_url.starts_with("sqlite:") {
        return Ok(None);
    }
    let path = data.join("serve.lock");
    let file = File::create(&path).with_context(|| format!("failed to write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "another server runs on the data folder {}; stop it first, or give this one a folder of its own with --data",
            data.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}
