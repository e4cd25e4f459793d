//! A hold that prevents garbage collection from removing blobs while a backup copies them. It is a
//! row of `meta` that the backup renews. Each collection checks it in the transaction that removes
//! blobs.
//!
//! Without a hold, a blob whose record is deleted after the snapshot could disappear before it is
//! copied. This can happen if the grace period is short, or if a collection marked the blob before
//! a record named it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::boxed;
use crate::db::{ConnectionPurpose, Database, Patience, Transaction, millis, values};
use crate::error::StoreError;
use crate::store::Store;

/// Lower and upper bound of the names of rows that store holds.
const FIRST: &str = "blobs_held:";
const END: &str = "blobs_held;";
/// Lifetime of a hold that is not renewed. The hold of a killed backup blocks collections no longer
/// than this.
const HOLD: Duration = Duration::from_mins(10);
const RENEWED: Duration = Duration::from_mins(1);
/// Key of a PostgreSQL advisory lock; the value is arbitrary. Collections that remove blobs take it
/// as a shared lock, a new hold as an exclusive one. So every collection that did not see the hold
/// has ended once the hold exists.
const LOCK: i64 = 0x7061_636c;

/// A hold on all blobs. No blob is collected while it lives, unless [`is_lost`](BlobHold::is_lost).
pub struct BlobHold {
    database: Database,
    name: String,
    until: Arc<AtomicI64>,
    renewing: JoinHandle<()>,
}

impl Store {
    /// Prevents every server of this database from collecting blobs. `Unavailable` if the database
    /// does not answer.
    #[boxed]
    pub async fn hold_blobs(&self) -> Result<BlobHold, StoreError> {
        let database = self.inner.db.clone();
        let name = format!("{FIRST}{:016x}", rand::random::<u64>());
        let mut transaction = database.begin_for(ConnectionPurpose::Write, Patience::Slow).await?;
        if transaction.is_shared() {
            transaction.fetch("SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", values![LOCK]).await?;
        }
        let over = "DELETE FROM meta WHERE name >= $1 AND name < $2 AND CAST(value AS BIGINT) <= $3";
        transaction.execute(over, values![FIRST, END, transaction.now_ms()]).await?;
        let until = Arc::new(AtomicI64::new(until(&database)));
        let value = until.load(Ordering::Acquire).to_string();
        transaction
            .execute("INSERT INTO meta (name, value) VALUES ($1, $2)", values![name.as_str(), value])
            .await?;
        transaction.commit().await?;
        let renewing = tokio::spawn(renew(database.clone(), name.clone(), Arc::clone(&until)));
        Ok(BlobHold { database, name, until, renewing })
    }
}

impl BlobHold {
    /// True if the hold expired before it was renewed. Blobs may have been collected then.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.database.now_ms() >= self.until.load(Ordering::Acquire)
    }

    /// Name of the row that stores the hold.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Ends the hold. If that fails, the hold expires by itself.
    #[boxed]
    pub async fn release(self) {
        self.renewing.abort();
        let delete = "DELETE FROM meta WHERE name = $1";
        if let Err(error) = self.database.execute(delete, values![self.name.as_str()]).await {
            tracing::warn!(%error, "could not release the hold on blobs; it expires in some minutes");
        }
    }
}

impl Drop for BlobHold {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// True if a hold exists, for a transaction that is about to remove blobs.
pub(crate) async fn is_held(transaction: &mut Transaction, now: i64) -> Result<bool, StoreError> {
    if transaction.is_shared() {
        transaction.fetch("SELECT CAST(pg_advisory_xact_lock_shared($1) AS TEXT)", values![LOCK]).await?;
    }
    let sql = "SELECT name FROM meta WHERE name >= $1 AND name < $2 AND CAST(value AS BIGINT) > $3 LIMIT 1";
    Ok(transaction.fetch_one(sql, values![FIRST, END, now]).await?.is_some())
}

/// True if a row of `meta` is a hold.
pub(super) fn is_of_a_hold(name: &str) -> bool {
    name.starts_with(FIRST)
}

fn until(database: &Database) -> i64 {
    database.now_ms().saturating_add(millis(HOLD))
}

async fn renew(database: Database, name: String, held: Arc<AtomicI64>) {
    loop {
        tokio::time::sleep(RENEWED).await;
        let until = until(&database);
        // An expired hold is not renewed: blobs may have been collected.
        let sql = "UPDATE meta SET value = $2 WHERE name = $1 AND CAST(value AS BIGINT) > $3";
        let renewed =
            database.execute(sql, values![name.as_str(), until.to_string(), database.now_ms()]).await;
        match renewed {
            Ok(1) => held.store(until, Ordering::Release),
            Ok(_) => {
                held.store(0, Ordering::Release);
                return;
            }
            Err(error) => tracing::warn!(%error, "could not renew the hold on blobs; will retry"),
        }
    }
}
