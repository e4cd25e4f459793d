//! Orphans: storage keys that no row of the table `blobs` names. The server records a key in the
//! table `strays` before it sends the first byte, so that no bytes are left behind.

use std::sync::Arc;
use std::time::Duration;

use super::storage::Storage;
use crate::db::{Database, values};
use crate::error::StoreError;

/// Time limit for an object from its beginning, or from its settling, to the row that names it.
const WINDOW: Duration = Duration::from_hours(24);
/// Time in ms for which replaced bytes stay in the storage. A reader that looked up their key
/// earlier may still read them.
pub(crate) const READ_FOR_MS: i64 = 60 * 60 * 1000;
/// Postpones the removal of an orphan, unless it has begun.
pub(crate) const RENEW: &str = "UPDATE strays SET due = $2 WHERE place = $1 AND due > 0";
/// Number of orphans removed at a time.
const BATCH: i64 = 100;

/// Recorded orphans of a storage. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Orphans(Arc<Known>);

struct Known {
    database: Database,
    storage: Storage,
    upload_ttl: Duration,
}

impl Orphans {
    /// Creates the access to the orphans of this database and storage. `upload_ttl` is the lifetime
    /// of an upload without further appends.
    pub(crate) fn new(database: Database, storage: Storage, upload_ttl: Duration) -> Orphans {
        Orphans(Arc::new(Known { database, storage, upload_ttl }))
    }

    /// Records a key before bytes are sent to it.
    pub(crate) async fn add(&self, key: &str, multipart: Option<&str>) -> Result<(), StoreError> {
        let sql = "INSERT INTO strays (place, multipart, due) VALUES ($1, $2, $3)";
        self.0.database.execute(sql, values![key, multipart, self.due()]).await?;
        Ok(())
    }

    /// Postpones the removal of an orphan, so that a row that names it can be created.
    /// `Unavailable` if the removal has begun.
    pub(crate) async fn renew(&self, key: &str) -> Result<(), StoreError> {
        match self.0.database.execute(RENEW, values![key, self.due()]).await? {
            0 => Err(StoreError::storage("the staged bytes expired and were deleted")),
            _ => Ok(()),
        }
    }

    /// Returns when an orphan recorded now is due for removal, in ms by the database's clock.
    fn due(&self) -> i64 {
        self.0.database.now_ms().saturating_add(i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns when the object of an upload that was appended to now is due for removal: some time
    /// after the upload itself expires.
    pub(crate) fn upload_due(&self) -> i64 {
        self.due().saturating_add(i64::try_from(self.0.upload_ttl.as_millis()).unwrap_or(i64::MAX))
    }

    /// Removes an orphan and its bytes in the background. Failures are left to
    /// [`sweep`](Orphans::sweep).
    pub(crate) fn remove_later(&self, key: String) {
        let orphans = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.0.storage.tasks.spawn_on(
            async move {
                if let Err(error) = orphans.remove_unnamed(&key).await {
                    tracing::warn!(%error, blob = key, "could not remove bytes that are no longer needed; \
                        will retry");
                }
            },
            &runtime,
        );
    }

    /// Removes the orphans that are due and returns their number.
    pub(crate) async fn sweep(&self) -> Result<u64, StoreError> {
        // Deletes a few rows at a time, so that no publish waits long.
        let named = "DELETE FROM strays WHERE place IN (SELECT s.place FROM strays s \
                     WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.place = s.place) LIMIT $1)";
        while self.0.database.execute_maintenance(named, values![BATCH]).await? > 0 {}
        // Checks the row itself too: PostgreSQL evaluates that condition again after it has waited
        // for a concurrent change of the row.
        let claim = "UPDATE strays SET due = 0 WHERE due > 0 AND due <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place) \
                     AND place IN (SELECT s.place FROM strays s WHERE s.due > 0 AND s.due <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.place = s.place) LIMIT $2)";
        let now = self.0.database.now_ms();
        while self.0.database.execute_maintenance(claim, values![now, BATCH]).await? > 0 {}
        let mut swept = 0;
        loop {
            let sql = "SELECT place, multipart FROM strays WHERE due = 0 LIMIT $1";
            let rows = self.0.database.fetch(sql, values![BATCH]).await?;
            if rows.is_empty() {
                return Ok(swept);
            }
            for row in rows {
                let mut columns = row.columns();
                self.remove(&columns.text("place")?, columns.opt_text("multipart")?).await?;
                swept += 1;
            }
        }
    }

    async fn remove_unnamed(&self, key: &str) -> Result<(), StoreError> {
        let claim = "UPDATE strays SET due = 0 WHERE place = $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place)";
        if self.0.database.execute(claim, values![key]).await? == 0 {
            return Ok(());
        }
        let sql = "SELECT multipart FROM strays WHERE place = $1";
        let Some(row) = self.0.database.fetch_one(sql, values![key]).await? else { return Ok(()) };
        self.remove(key, row.columns().opt_text("multipart")?).await
    }

    /// Removes the bytes and then the row of an orphan whose removal has begun.
    async fn remove(&self, key: &str, multipart: Option<String>) -> Result<(), StoreError> {
        self.0.storage.remove(key, multipart).await?;
        self.0.database.execute("DELETE FROM strays WHERE place = $1", values![key]).await?;
        Ok(())
    }
}
