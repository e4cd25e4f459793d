//! Garbage collection: blobs that nothing holds, expired uploads, and leftovers of crashes.
//!
//! A blob is held by a record, a cached response, a trash entry or a pin (a row of `leases`). A
//! collection marks any other blob, and removes it after the grace period if nothing holds it by
//! then. One transaction replaces the blob's row by an orphan's row. Then the bytes are deleted.
//!
//! A publish that names the blob commits either before that transaction, and then holds the blob,
//! or after it, and then finds the blob unknown. A client can store the same bytes again
//! immediately. An interrupted collection continues with the orphans.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::backup::is_held;
use crate::blobs::fs::Folder;
use crate::blobs::storage::{StoragePlace, blocking};
use crate::boxed;
use crate::db::{Value, is_retryable, placeholders, values};
use crate::error::StoreError;
use crate::store::Store;

/// Rows examined in one transaction. The number is small, because each row may contain a file's
/// bytes and publishes must not wait long.
const PAGE: i64 = 250;
/// Blobs removed in one pass, and the pause after it. Removing files slows down other writes.
const REMOVED: i64 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum time for which a file may exist before its row does.
const WINDOW: Duration = Duration::from_hours(1);

/// Condition that a row of `blobs` is held at the time `$1`.
pub(crate) const HELD: &str = "(EXISTS (SELECT 1 FROM record_blobs r WHERE r.blob = blobs.id) \
                     OR EXISTS (SELECT 1 FROM leases l WHERE l.blob = blobs.id AND l.until > $1) \
                     OR EXISTS (SELECT 1 FROM cached_answers c WHERE c.blob = blobs.id) \
                     OR EXISTS (SELECT 1 FROM trash_blobs t WHERE t.blob = blobs.id))";

/// Numbers of what a collection removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Number of blobs that nothing held.
    pub blobs: u64,
    /// Total bytes of these blobs.
    pub bytes: u64,
    /// Number of uploads that had expired.
    pub uploads: u64,
    /// Objects and files without a row: leftovers of crashes.
    pub leftovers: u64,
}

impl Store {
    /// Removes blobs that nothing holds, expired uploads and leftovers. `Unavailable` if the
    /// database or the storage failed; the next call continues.
    #[boxed]
    pub async fn collect_garbage(&self) -> Result<Collected, StoreError> {
        let uploads = self.expire_uploads().await?;
        self.forget_leases().await?;
        self.mark().await?;
        let mut collected = Collected { uploads, ..Collected::default() };
        loop {
            let (blobs, bytes) = self.remove_marked().await?;
            collected.blobs += blobs;
            collected.bytes += bytes;
            self.inner.orphans.sweep().await?;
            if blobs == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        collected.leftovers = self.sweep_leftovers().await?;
        metrics::counter!("packhouse_blobs_collected_total").increment(collected.blobs);
        Ok(collected)
    }

    /// Removes leftovers of crashes, and objects that a restored older database does not know.
    /// Returns the number of files or objects.
    pub(crate) async fn sweep_leftovers(&self) -> Result<u64, StoreError> {
        let orphans = self.inner.orphans.sweep().await?;
        match &self.inner.storage.place {
            StoragePlace::Folder(folder) => {
                let (folder, staging) = (Arc::clone(folder), self.sweep_staging().await?);
                Ok(orphans + staging + self.sweep_folder(folder).await?)
            }
            StoragePlace::Bucket(bucket) => Ok(orphans + self.sweep_bucket(bucket).await?),
        }
    }

    async fn sweep_folder(&self, folder: Arc<Folder>) -> Result<u64, StoreError> {
        let mut swept = 0;
        let before = |age: Duration| self.now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let settled = before(self.inner.config.gc_grace.max(WINDOW));
        for shard in 0..=u8::MAX {
            let folder = Arc::clone(&folder);
            let keys = blocking(move || folder.settled_before(shard, settled)).await?;
            swept += self.sweep_unnamed(&keys).await?;
        }
        let (uploads, touched) = (Arc::clone(&folder), before(WINDOW));
        for name in blocking(move || uploads.uploads_before(touched)).await? {
            if !self.is_upload(&name).await? {
                let folder = Arc::clone(&folder);
                blocking(move || folder.remove_upload(&name)).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Cleans up at the start. Incomplete files of earlier processes are removed immediately; work
    /// that examines all blobs runs in the background.
    pub(crate) async fn sweep_at_start(&self) -> Result<(), StoreError> {
        let swept = self.sweep_staging().await?;
        if swept > 0 {
            tracing::info!(files = swept, "removed incomplete files of an earlier process");
        }
        let store = self.clone();
        tokio::spawn(async move {
            // Does not list a bucket now. Only one process lists in each grace period, and a
            // short-lived process would take that turn from a longer-lived one.
            let swept = match &store.inner.storage.place {
                StoragePlace::Folder(_) => store.sweep_leftovers().await,
                StoragePlace::Bucket(_) => store.inner.orphans.sweep().await,
            };
            if let Err(error) = swept
                && !store.inner.closing.load(Ordering::Acquire)
            {
                tracing::warn!(%error, "sweeping leftovers failed; the next collection retries");
            }
        });
        Ok(())
    }

    /// Removes incomplete files of earlier processes; returns the number of files.
    async fn sweep_staging(&self) -> Result<u64, StoreError> {
        let StoragePlace::Folder(folder) = &self.inner.storage.place else { return Ok(0) };
        let folder = Arc::clone(folder);
        blocking(move || folder.sweep_staging()).await
    }

    /// Removes the objects and files with these keys that neither a blob nor an orphan names;
    /// returns how many.
    pub(crate) async fn sweep_unnamed(&self, keys: &[String]) -> Result<u64, StoreError> {
        let mut swept = 0;
        for keys in keys.chunks(usize::try_from(PAGE).unwrap_or(usize::MAX)) {
            let among = placeholders(1, keys.len());
            // One statement must read both tables. An orphan's row is removed only after a
            // transaction names its key in `blobs`, so every known key is in one of the tables.
            let sql = format!(
                "SELECT place FROM blobs WHERE place IN {among} UNION SELECT place FROM strays WHERE place IN {among}"
            );
            let rows = self.inner.db.fetch(sql, keys.iter().map(|key| key.as_str().into()).collect()).await?;
            let named = rows.iter().map(|row| row.columns().text("place")).collect::<Result<Vec<_>, _>>()?;
            for key in keys.iter().filter(|key| !named.contains(key)) {
                self.inner.storage.remove(key, None).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    async fn forget_leases(&self) -> Result<(), StoreError> {
        // Checks the row itself too: PostgreSQL evaluates that condition again after it has waited
        // for a renewal of the pin.
        let sql = "DELETE FROM leases WHERE until <= $1 AND (blob, repository) IN \
                   (SELECT blob, repository FROM leases WHERE until <= $1 ORDER BY until LIMIT $2)";
        while self.inner.db.execute_maintenance(sql, values![self.now_ms(), PAGE]).await? > 0 {}
        Ok(())
    }

    /// Marks blobs that nothing holds and unmarks those that are held again, a page at a time. A
    /// page without a change writes nothing, so it blocks no publish.
    async fn mark(&self) -> Result<(), StoreError> {
        let now = self.now_ms();
        let wrong = format!(
            "SELECT COUNT(*) AS wrong FROM blobs WHERE id > $2 AND id <= $3 \
             AND CASE WHEN {HELD} THEN 1 ELSE 0 END = CASE WHEN marked_at IS NULL THEN 0 ELSE 1 END"
        );
        let unmark = format!(
            "UPDATE blobs SET marked_at = NULL WHERE id > $2 AND id <= $3 AND marked_at IS NOT NULL AND {HELD}"
        );
        let mark = format!(
            "UPDATE blobs SET marked_at = $1 WHERE id > $2 AND id <= $3 AND marked_at IS NULL AND NOT {HELD}"
        );
        let mut from = i64::MIN;
        loop {
            let sql = "SELECT MAX(id) AS last FROM (SELECT id FROM blobs WHERE id > $1 ORDER BY id LIMIT $2) AS page";
            let row = self.inner.db.fetch_one(sql, values![from, PAGE]).await?;
            let Some(to) = row.map(|row| row.columns().opt_int("last")).transpose()?.flatten() else {
                return Ok(());
            };
            let found = self.inner.db.fetch_one(wrong.clone(), values![now, from, to]).await?;
            if found.map_or(Ok(0), |row| row.columns().int("wrong"))? > 0 {
                self.inner.db.execute_maintenance(unmark.clone(), values![now, from, to]).await?;
                self.inner.db.execute_maintenance(mark.clone(), values![now, from, to]).await?;
            }
            from = to;
        }
    }

    /// Removes the rows of some blobs whose grace period is over; returns their number and bytes.
    async fn remove_marked(&self) -> Result<(u64, u64), StoreError> {
        loop {
            match self.try_remove_marked().await {
                // A publish changed these rows first, so examine the current state again.
                Err(error) if is_retryable(&error) => {}
                other => return other,
            }
        }
    }

    async fn try_remove_marked(&self) -> Result<(u64, u64), StoreError> {
        let now = self.now_ms();
        let mut transaction = self.inner.db.begin().await?;
        if is_held(&mut transaction, now).await? {
            return Ok((0, 0));
        }
        let sql = format!(
            "SELECT id, size, place FROM blobs WHERE marked_at IS NOT NULL AND marked_at <= $2 AND NOT {HELD} LIMIT $3"
        );
        let before = now.saturating_sub(self.grace_ms());
        let rows = transaction.fetch(sql, values![now, before, REMOVED]).await?;
        let (mut ids, mut orphans, mut bytes) = (Vec::<Value>::new(), Vec::<[Value; 2]>::new(), 0);
        for row in &rows {
            let mut columns = row.columns();
            ids.push(columns.int("id")?.into());
            bytes += columns.unsigned("size")?;
            orphans.extend(columns.opt_text("place")?.map(|place| [place.into(), 0_i64.into()]));
        }
        if ids.is_empty() {
            return Ok((0, 0));
        }
        let (count, list) = (ids.len(), placeholders(1, ids.len()));
        // All pins of these blobs have expired. If another process pins one meanwhile, the pin
        // references the row, and this transaction fails.
        let leases = format!("DELETE FROM leases WHERE blob IN {list} AND until <= ${}", count + 1);
        transaction.execute(leases, [ids.clone(), values![now]].concat()).await?;
        transaction.execute(format!("DELETE FROM blobs WHERE id IN {list}"), ids).await?;
        let insert = "INSERT INTO strays (place, due) VALUES ";
        transaction.execute_rows(insert, orphans, " ON CONFLICT (place) DO UPDATE SET due = 0").await?;
        transaction.commit().await?;
        Ok((count as u64, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;

    /// More than two pages of rows.
    const BLOBS: i64 = 2500;

    /// Opens a store with blobs that nothing holds, all marked at this time or none.
    async fn with_blobs(folder: &std::path::Path, marked_at: Option<i64>) -> Store {
        let config = StoreConfig { gc_grace: Duration::ZERO, ..StoreConfig::new(folder) };
        let store = Store::open(config).await.unwrap();
        let sql = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < $1) \
                   INSERT INTO blobs (id, sha256, size, checked, data, digests, marked_at, created_at) \
                   SELECT id, CAST(CAST(id AS TEXT) AS BLOB), 1, 0, CAST('a' AS BLOB), '', $2, 0 FROM n";
        store.inner.db.execute(sql, values![BLOBS, marked_at]).await.unwrap();
        store
    }

    async fn count(store: &Store, what: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) AS count FROM blobs WHERE {what}");
        store.inner.db.fetch_one(sql, values![]).await.unwrap().unwrap().columns().int("count").unwrap()
    }

    #[tokio::test]
    async fn no_transaction_of_a_collection_changes_many_rows() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_blobs(folder.path(), None).await;
        let collected = store.collect_garbage().await.unwrap();
        assert_eq!(collected.blobs, BLOBS as u64);
        assert_eq!(count(&store, "id > 0").await, 0);
        let most = store.inner.db.most_changed_by_maintenance();
        assert!(0 < most && most <= PAGE as u64, "{most} rows in one transaction");
        store.close().await;
    }

    #[tokio::test]
    async fn marks_are_taken_from_few_rows_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_blobs(folder.path(), Some(1)).await;
        let owned = "INSERT INTO organizations (id, name, created_at) VALUES (1, 'o', 0)";
        let repository = "INSERT INTO repositories (id, organization, name, format, kind, public, settings, members, \
                          revision, settings_revision, created_at) VALUES (1, 1, 'r', 'f', 'hosted', 0, '{}', '[]', 0, 0, 0)";
        let leases = "INSERT INTO leases (blob, repository, until) SELECT id, 1, $1 FROM blobs";
        store.inner.db.execute(owned, values![]).await.unwrap();
        store.inner.db.execute(repository, values![]).await.unwrap();
        store.inner.db.execute(leases, values![i64::MAX]).await.unwrap();
        assert_eq!(store.collect_garbage().await.unwrap().blobs, 0);
        assert_eq!(count(&store, "marked_at IS NULL").await, BLOBS);
        let most = store.inner.db.most_changed_by_maintenance();
        assert!(0 < most && most <= PAGE as u64, "{most} rows in one transaction");
        store.close().await;
    }
}
