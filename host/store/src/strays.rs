//! Strays: keys in the storage of blobs that no row of the table `blobs` names, known so that nothing is left behind.

use std::time::Duration;

use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// How long an object may take from its beginning, or from its settling, to the row that names it.
const WINDOW: Duration = Duration::from_hours(24);
/// Puts off a stray's end, unless its removal has begun.
pub(crate) const RENEW: &str = "UPDATE strays SET due = $2 WHERE place = $1 AND due > 0";
/// How many are removed in one go.
const BATCH: i64 = 100;

impl Store {
    /// Makes a key known before bytes are sent to it.
    pub(crate) async fn add_stray(&self, key: &str, multipart: Option<&str>) -> Result<(), StoreError> {
        let sql = "INSERT INTO strays (place, multipart, due) VALUES ($1, $2, $3)";
        self.inner.db.execute(sql, values![key, multipart, self.stray_due()]).await?;
        Ok(())
    }

    /// Puts off a stray's end so that a row can be made that names it. `Unavailable` when its removal has begun.
    pub(crate) async fn renew_stray(&self, key: &str) -> Result<(), StoreError> {
        match self.inner.db.execute(RENEW, values![key, self.stray_due()]).await? {
            0 => Err(StoreError::storage("bytes that were staged for very long are gone")),
            _ => Ok(()),
        }
    }

    /// When a stray of now is due.
    fn stray_due(&self) -> i64 {
        self.now_ms().saturating_add(i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX))
    }

    /// When the object of an upload is due to which bytes were added now: a while after the upload itself.
    pub(crate) fn upload_due(&self) -> i64 {
        self.stray_due()
            .saturating_add(i64::try_from(self.inner.config.upload_ttl.as_millis()).unwrap_or(i64::MAX))
    }

    /// Removes a stray and its bytes in the background; what fails is left to `sweep_strays`.
    pub(crate) fn forget_stray(&self, key: String) {
        let store = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.inner.storage.tasks.spawn_on(
            async move {
                if let Err(error) = forget(&store, &key).await {
                    tracing::warn!(%error, blob = key, "bytes that are no longer needed were not removed yet");
                }
            },
            &runtime,
        );
    }

    /// Removes strays that are due; how many.
    pub(crate) async fn sweep_strays(&self) -> Result<u64, StoreError> {
        let named = "DELETE FROM strays WHERE EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place)";
        self.inner.db.execute_slowly(named, values![]).await?;
        let claim = "UPDATE strays SET due = 0 WHERE due > 0 AND due <= $1 \
                     AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place)";
        self.inner.db.execute_slowly(claim, values![self.now_ms()]).await?;
        let mut swept = 0;
        loop {
            let sql = "SELECT place, multipart FROM strays WHERE due = 0 LIMIT $1";
            let rows = self.inner.db.fetch(sql, values![BATCH]).await?;
            if rows.is_empty() {
                return Ok(swept);
            }
            for row in rows {
                let mut columns = row.columns();
                remove(self, &columns.text("place")?, columns.opt_text("multipart")?).await?;
                swept += 1;
            }
        }
    }
}

async fn forget(store: &Store, key: &str) -> Result<(), StoreError> {
    let claim = "UPDATE strays SET due = 0 WHERE place = $1 \
                 AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.place = strays.place)";
    if store.inner.db.execute(claim, values![key]).await? == 0 {
        return Ok(());
    }
    let sql = "SELECT multipart FROM strays WHERE place = $1";
    let Some(row) = store.inner.db.fetch_one(sql, values![key]).await? else { return Ok(()) };
    remove(store, key, row.columns().opt_text("multipart")?).await
}

/// Removes the bytes and then the row of a stray whose removal has begun.
async fn remove(store: &Store, key: &str, multipart: Option<String>) -> Result<(), StoreError> {
    store.inner.storage.remove(key, multipart).await?;
    store.inner.db.execute("DELETE FROM strays WHERE place = $1", values![key]).await?;
    Ok(())
}
