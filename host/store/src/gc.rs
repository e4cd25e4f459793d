//! Collection of garbage: blobs that nothing holds, uploads that expired, and what crashes left behind.
//!
//! A blob that no record, kept answer or entry of the trash names and no lease holds is marked, waits out the time of grace, and is removed if it is
//! still unheld: one transaction replaces its row by an orphan's, then the bytes go. So a publish that names it comes before, and
//! finds it held, or after, and finds it unknown; the same bytes can be stored anew at once; and a collection that was
//! interrupted goes on from the orphans.

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

/// Rows looked at in one transaction: few enough that a publish does not wait long, though each may hold a file's bytes.
const PAGE: i64 = 250;
/// Blobs removed in one go, and the pause after it: removing files slows down the writing of others.
const REMOVED: i64 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a file may be there before its row is.
const WINDOW: Duration = Duration::from_hours(1);

/// Of a row of `blobs`, at the time `$1`.
pub(crate) const HELD: &str = "(EXISTS (SELECT 1 FROM record_blobs r WHERE r.blob = blobs.id) \
                     OR EXISTS (SELECT 1 FROM leases l WHERE l.blob = blobs.id AND l.until > $1) \
                     OR EXISTS (SELECT 1 FROM cached_answers c WHERE c.blob = blobs.id) \
                     OR EXISTS (SELECT 1 FROM trash_blobs t WHERE t.blob = blobs.id))";

/// What a collection removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs that no record named and no lease held.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Uploads that had expired.
    pub uploads: u64,
    /// Stored objects and files that nothing knew of: leftovers of crashes.
    pub leftovers: u64,
}

impl Store {
    /// Removes blobs that nothing holds, uploads that expired, and leftovers. `Unavailable` when database or storage failed; what
    /// was begun then goes on at the next call.
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

    /// Removes what crashes left behind, and what is newer than a database that was restored; how many files or objects.
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

    /// At the start: what processes that are gone were receiving goes at once, what takes a walk through all blobs in the
    /// background.
    pub(crate) async fn sweep_at_start(&self) -> Result<(), StoreError> {
        let swept = self.sweep_staging().await?;
        if swept > 0 {
            tracing::info!(files = swept, "removed what an earlier process was still receiving");
        }
        let store = self.clone();
        tokio::spawn(async move {
            // A bucket is not listed now: a process that ends in a moment would take the turn from one that does not.
            let swept = match &store.inner.storage.place {
                StoragePlace::Folder(_) => store.sweep_leftovers().await,
                StoragePlace::Bucket(_) => store.inner.orphans.sweep().await,
            };
            if let Err(error) = swept
                && !store.inner.closing.load(Ordering::Acquire)
            {
                tracing::warn!(%error, "leftovers were not swept; the next collection does it");
            }
        });
        Ok(())
    }

    /// Removes what processes that are gone were receiving; how many files.
    async fn sweep_staging(&self) -> Result<u64, StoreError> {
        let StoragePlace::Folder(folder) = &self.inner.storage.place else { return Ok(0) };
        let folder = Arc::clone(folder);
        blocking(move || folder.sweep_staging()).await
    }

    /// Removes those of these keys that no blob has and that are not known to be on their way; how many.
    pub(crate) async fn sweep_unnamed(&self, keys: &[String]) -> Result<u64, StoreError> {
        let mut swept = 0;
        for keys in keys.chunks(usize::try_from(PAGE).unwrap_or(usize::MAX)) {
            let among = placeholders(1, keys.len());
            // In one statement: an orphan becomes a blob in one transaction, and its own row is removed only after that.
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
        // The condition is on the row itself too: PostgreSQL evaluates it again when it had to wait for a renewal of the lease.
        let sql = "DELETE FROM leases WHERE until <= $1 AND (blob, repository) IN \
                   (SELECT blob, repository FROM leases WHERE until <= $1 ORDER BY until LIMIT $2)";
        while self.inner.db.execute_slowly(sql, values![self.now_ms(), PAGE]).await? > 0 {}
        Ok(())
    }

    /// Marks what nothing holds, and takes the mark from what is held again: a page at a time, of which those that are as they
    /// should be keep no publish waiting.
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
                self.inner.db.execute_slowly(unmark.clone(), values![now, from, to]).await?;
                self.inner.db.execute_slowly(mark.clone(), values![now, from, to]).await?;
            }
            from = to;
        }
    }

    /// Removes the rows of some blobs whose time of grace is over; how many, and their bytes.
    async fn remove_marked(&self) -> Result<(u64, u64), StoreError> {
        loop {
            match self.try_remove_marked().await {
                // A publish came first: look again at what is held now.
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
        // What is left of leases is over; one that was taken just now keeps the row, and this transaction fails.
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

    /// More than two pages.
    const BLOBS: i64 = 2500;

    /// A store with blobs of which nothing is held, all of them marked at this time or none.
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
        let most = store.inner.db.most_changed_slowly();
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
        let most = store.inner.db.most_changed_slowly();
        assert!(0 < most && most <= PAGE as u64, "{most} rows in one transaction");
        store.close().await;
    }
}
