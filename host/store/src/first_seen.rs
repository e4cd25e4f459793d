//! First sighting of versions whose upstream states no publication time.

use std::collections::{BTreeMap, BTreeSet};

use crate::boxed;
use crate::db::{MultiRow, Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Rows of one transaction. The number is small so that publishes do not wait long.
const AT_ONCE: usize = 1_000;
/// Maximum rows of a repository, in addition to those of versions in its catalog.
const MOST: i64 = 1_000_000;
/// Average number of added rows between two searches for surplus rows.
const BETWEEN_LOOKS: u32 = 10_000;

// A join finds each row by its whole key. `IN` over several columns would scan all rows of the
// repository.
pub(crate) const KNOWN: [&str; 2] = [
    "WITH judged (repository, name, version) AS (VALUES ",
    ") SELECT s.version, s.seen_at FROM judged j JOIN first_seen s \
      ON s.repository = j.repository AND s.name = j.name AND s.version = j.version",
];
/// Insert that keeps the row if another server has inserted it first.
const NOTE: [&str; 2] = [
    "INSERT INTO first_seen (repository, name, version, seen_at) VALUES ",
    " ON CONFLICT (repository, name, version) DO NOTHING",
];
const FIND: &str = "SELECT seen_at FROM first_seen WHERE repository = $1 AND name = $2 AND version = $3";
const NEWEST_SURPLUS: &str =
    "SELECT seen_at FROM first_seen WHERE repository = $1 ORDER BY seen_at DESC LIMIT 1 OFFSET $2";
const FORGET: &str = "DELETE FROM first_seen WHERE (repository, name, version) IN \
    (SELECT s.repository, s.name, s.version FROM first_seen s WHERE s.repository = $1 AND s.seen_at <= $2 \
     AND NOT EXISTS (SELECT 1 FROM versions v \
                     WHERE v.repository = s.repository AND v.name = s.name AND v.version = s.version) \
     ORDER BY s.seen_at LIMIT $3)";

impl Store {
    /// Times in ms since 1970 at which the server first saw these versions of a package. New
    /// versions are recorded with the current time. Versions that no database can store are left
    /// out.
    #[boxed]
    pub async fn note_first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        mut versions: BTreeSet<String>,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        versions.retain(|version| !version.contains('\0'));
        if versions.is_empty() || name.contains('\0') {
            return Ok(BTreeMap::new());
        }
        let row =
            |version: &String| -> [Value; 3] { [repository.0.into(), name.into(), version.as_str().into()] };
        let [before, after] = KNOWN;
        let known = MultiRow::new(before, versions.iter().map(row).collect(), after);
        let mut recorded = BTreeMap::new();
        for row in &self.inner.db.fetch_multi_row(known).await? {
            let mut columns = row.columns();
            recorded.insert(columns.text("version")?, columns.unsigned("seen_at")?);
        }
        let new: Vec<String> =
            versions.into_iter().filter(|version| !recorded.contains_key(version)).collect();
        let now = self.now_ms();
        // An error here must not prevent the listing of a package. A version that is not recorded
        // counts as new again next time.
        if let Err(problem) = self.write_first_seen(repository, name, &new, now).await {
            tracing::warn!(%problem, %repository, "could not record when versions were first seen");
        }
        let now = u64::try_from(now).unwrap_or_default();
        recorded.extend(new.into_iter().map(|version| (version, now)));
        Ok(recorded)
    }

    /// Time in ms since 1970 at which the server first saw this version; `None` if it is not
    /// recorded.
    #[boxed]
    pub async fn find_first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<Option<u64>, StoreError> {
        let row = self.inner.db.find(FIND, values![repository.0, name, version]).await?;
        row.map(|row| row.columns().unsigned("seen_at")).transpose()
    }

    /// Deletes all rows of a repository except the newest `most` and those of versions in its
    /// catalog; returns the number of deleted rows. A version whose row was deleted counts as new
    /// when it is next listed.
    #[boxed]
    pub async fn forget_first_seen(&self, repository: RepositoryId, most: i64) -> Result<u64, StoreError> {
        let rows = self.inner.db.fetch_uncounted(NEWEST_SURPLUS, values![repository.0, most]).await?;
        let Some(row) = rows.first() else { return Ok(0) };
        let (last, at_once) = (row.columns().int("seen_at")?, i64::try_from(AT_ONCE).unwrap_or(i64::MAX));
        let mut gone = 0;
        loop {
            let values = values![repository.0, last, at_once];
            match self.inner.db.execute_maintenance(FORGET, values).await? {
                0 => return Ok(gone),
                some => gone += some,
            }
        }
    }

    async fn write_first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        versions: &[String],
        at: i64,
    ) -> Result<(), StoreError> {
        let row = |version: &String| -> [Value; 4] {
            [repository.0.into(), name.into(), version.as_str().into(), at.into()]
        };
        let [before, after] = NOTE;
        for some in versions.chunks(AT_ONCE) {
            let mut transaction = self.inner.db.begin().await?;
            let expected = self.inner.snapshots.expect(self.inner.db.generation());
            transaction.execute_rows(before, some.iter().map(row).collect(), after).await?;
            transaction.commit().await?;
            expected.carry_unchanged(self.inner.db.generation());
        }
        // The search for surplus rows reads all other rows of the repository. So it runs rarely and
        // in the background.
        let added = u32::try_from(versions.len()).unwrap_or(u32::MAX);
        if rand::random_range(0..BETWEEN_LOOKS) < added {
            let store = self.clone();
            tokio::spawn(async move {
                if let Err(problem) = store.forget_first_seen(repository, MOST).await {
                    tracing::warn!(%problem, %repository, "could not remove the oldest records of when \
                        versions were first seen");
                }
            });
        }
        Ok(())
    }
}
