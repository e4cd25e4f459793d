//! What keeps the collection of garbage from removing blobs while a backup copies them: a row of `meta`, which the backup renews, and
//! which every collection looks at in the transaction that removes blobs.
//!
//! Without it a blob whose record is deleted after the snapshot could be gone before it is copied: at once, where the time of grace is
//! short, or where it had been marked before it was named again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::boxed;
use crate::db::{Database, Patience, Purpose, Transaction, millis, values};
use crate::error::StoreError;
use crate::store::Store;

/// What the names of the rows begin with, and the first name that does not.
const FIRST: &str = "blobs_held:";
const END: &str = "blobs_held;";
/// For how long a hold stands that is not renewed: a backup that was killed keeps no collection for longer.
const HOLD: Duration = Duration::from_mins(10);
const RENEWED: Duration = Duration::from_mins(1);
/// What a collection that removes takes together with others, and who wants to hold blobs alone: a collection that did not see the
/// hold has ended by the time it stands. Of PostgreSQL; any number.
const LOCK: i64 = 0x7061_636c;

/// No blob is collected while this lives. [`is_lost`](BlobHold::is_lost) says whether that was so.
pub struct BlobHold {
    database: Database,
    name: String,
    until: Arc<AtomicI64>,
    renewing: JoinHandle<()>,
}

impl Store {
    /// From now on no blob is collected by any server of this database. `Unavailable` when the database does not answer.
    #[boxed]
    pub async fn hold_blobs(&self) -> Result<BlobHold, StoreError> {
        let database = self.inner.db.clone();
        let name = format!("{FIRST}{:016x}", rand::random::<u64>());
        let mut transaction = database.begin_for(Purpose::Write, Patience::Slow).await?;
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
    /// Whether it could not be renewed for so long that blobs may have been collected.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.database.now_ms() >= self.until.load(Ordering::Acquire)
    }

    /// The row that stands for it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Ends it. What fails ends by itself.
    #[boxed]
    pub async fn release(self) {
        self.renewing.abort();
        let delete = "DELETE FROM meta WHERE name = $1";
        if let Err(error) = self.database.execute(delete, values![self.name.as_str()]).await {
            tracing::warn!(%error, "blobs are kept from collection for some minutes more");
        }
    }
}

impl Drop for BlobHold {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// Whether somebody holds blobs, for a transaction that is about to remove some.
pub(crate) async fn is_held(transaction: &mut Transaction, now: i64) -> Result<bool, StoreError> {
    if transaction.is_shared() {
        transaction.fetch("SELECT CAST(pg_advisory_xact_lock_shared($1) AS TEXT)", values![LOCK]).await?;
    }
    let sql = "SELECT name FROM meta WHERE name >= $1 AND name < $2 AND CAST(value AS BIGINT) > $3 LIMIT 1";
    Ok(transaction.fetch_one(sql, values![FIRST, END, now]).await?.is_some())
}

/// Whether a row of `meta` is one of these.
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
        // One that is over is not taken up again: blobs may be gone.
        let sql = "UPDATE meta SET value = $2 WHERE name = $1 AND CAST(value AS BIGINT) > $3";
        let renewed =
            database.execute(sql, values![name.as_str(), until.to_string(), database.now_ms()]).await;
        match renewed {
            Ok(1) => held.store(until, Ordering::Release),
            Ok(_) => {
                held.store(0, Ordering::Release);
                return;
            }
            Err(error) => tracing::warn!(%error, "the hold on blobs was not renewed yet"),
        }
    }
}
