//! Orphans: keys in the storage of blobs that no row of the table `blobs` names. They are recorded in the table `strays` before
//! their first byte is sent, so that nothing is left behind.

use std::sync::Arc;
use std::time::Duration;

use super::storage::Storage;
use crate::db::{Database, values};
use crate::error::StoreError;

/// How long an object may take from its beginning, or from its settling, to the row that names it.
const WINDOW: Duration = Duration::from_hours(24);
/// For how long bytes stay that were replaced, in ms: whoever looked them up before may still read
/// them.
pub(crate) const READ_FOR_MS: i64 = 60 * 60 * 1000;
/// Puts off an orphan's end, unless its removal has begun.
pub(crate) const RENEW: &str = "UPDATE strays SET due = $2 WHERE place = $1 AND due > 0";
/// How many are removed in one go.
const BATCH: i64 = 100;

/// The orphans that are recorded. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Orphans(Arc<Known>);

struct Known {
    database: Database,
    storage: Storage,
    upload_ttl: Duration,
}

impl Orphans {
    /// Those of this database in this storage; `upload_ttl` is how long an upload is kept to which nothing is added.
    pub(crate) fn new(database: Database, storage: Storage, upload_ttl: Duration) -> Orphans {
        Orphans(Arc::new(Known { database, storage, upload_ttl }))
    }

    /// Records a key before bytes are sent to it.
    pub(crate) async fn add(&self, key: &str, multipart: Option<&str>) -> Result<(), StoreError> {
        let sql = "INSERT INTO strays (place, multipart, due) VALUES ($1, $2, $3)";
        self.0.database.execute(sql, values![key, multipart, self.due()]).await?;
        Ok(())
    }

    /// Puts off an orphan's end so that a row can be made that names it. `Unavailable` when its removal has begun.
    pub(crate) async fn renew(&self, key: &str) -> Result<(), StoreError> {
        match self.0.database.execute(RENEW, values![key, self.due()]).await? {
            0 => Err(StoreError::storage("bytes that were staged for very long are gone")),
            _ => Ok(()),
        }
    }

    /// When an orphan that is recorded now is due, in ms by the database's clock.
    fn due(&self) -> i64 {
        self.0.database.now_ms().saturating_add(i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX))
    }

    /// When the object of an upload is due to which bytes were added now: a while after the upload itself.
    pub(crate) fn upload_due(&self) -> i64 {
        self.due().saturating_add(i64::try_from(self.0.upload_ttl.as_millis()).unwrap_or(i64::MAX))
    }

    /// Removes an orphan and its bytes in the background; what fails is left to [`sweep`](Orphans::sweep).
    pub(crate) fn remove_later(&self, key: String) {
        let orphans = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.0.storage.tasks.spawn_on(
            async move {
                if let Err(error) = orphans.remove_unnamed(&key).await {
                    tracing::warn!(%error, blob = key, "bytes that are no longer needed were not removed yet");
                }
            },
            &runtime,
        );
    }

    /// Removes orphans that are due; how many.
    pub(crate) async fn sweep(&self) -> Result<u64, StoreError> {
        // Few at a time, so that no publish waits long.
        let named = "DELETE FROM strays WHERE place IN (SELECT s.place FROM strays s \
                     WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.place = s.place) LIMIT $1)";
        while self.0.database.execute_slowly(named, values![BATCH]).await? > 0 {}
        // The condition is on the row itself too: PostgreSQL evaluates it again when it had to wait for another's change.
        let claim = "UPDATE strays SET due = 0 WHERE due > 0 AND due <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place) \
                     AND place IN (SELECT s.place FROM strays s WHERE s.due > 0 AND s.due <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.place = s.place) LIMIT $2)";
        let now = self.0.database.now_ms();
        while self.0.database.execute_slowly(claim, values![now, BATCH]).await? > 0 {}
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
