//! The lock that allows only one server on a SQLite database. It is an operating system lock, so it
//! ends with the process in any case.

use std::fs::{File, TryLockError};

use anyhow::{Context, bail};

use packhouse_config::Config;

/// Locks the data folder until the returned value is dropped. With PostgreSQL, servers share a
/// database, so nothing is locked.
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
            "another server is using the data folder {}; stop it first, or give this server its own folder with --data",
            data.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}
