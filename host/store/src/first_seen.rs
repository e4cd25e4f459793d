//! When the server first saw versions of an upstream that states no time for them.

use std::collections::{BTreeMap, BTreeSet};

use crate::boxed;
use crate::db::{MultiRow, Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Rows that go in one transaction, few enough that no publish waits long.
const AT_ONCE: usize = 1_000;
/// Rows of a repository, besides those of versions that it shows.
const MOST: i64 = 1_000_000;
/// The average number of rows that are added before the store looks for surplus ones.
const BETWEEN_LOOKS: u32 = 10_000;

// Joined, so that each row is found by its whole key: `IN` over several columns would look at all rows of the repository.
pub(crate) const KNOWN: [&str; 2] = [
    "WITH judged (repository, name, version) AS (VALUES ",
    ") SELECT s.version, s.seen_at FROM judged j JOIN first_seen s \
      ON s.repository = j.repository AND s.name = j.name AND s.version = j.version",
];
/// Another server may have been faster.
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
    /// The moments, in ms since 1970, at which the server first saw these versions of a package. Those that it has not seen before
    /// it sees now, and remembers that. A version that no database can hold is left out.
    #[boxed]
    pub async fn note_first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        versions: BTreeSet<String>,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        self.first_seen(repository, name, versions, true).await
    }

    /// The same moments, but nothing is remembered.
    #[boxed]
    pub async fn read_first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        versions: BTreeSet<String>,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        self.first_seen(repository, name, versions, false).await
    }

    async fn first_seen(
        &self,
        repository: RepositoryId,
        name: &str,
        mut versions: BTreeSet<String>,
        remembers: bool,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        versions.retain(|version| !version.contains('\0'));
        if versions.is_empty() || name.contains('\0') {
            return Ok(BTreeMap::new());
        }
        let row =
            |version: &String| -> [Value; 3] { [repository.0.into(), name.into(), version.as_str().into()] };
        let [before, after] = KNOWN;
        let known = MultiRow::new(before, versions.iter().map(row).collect(), after);
        let mut seen = BTreeMap::new();
        for row in &self.inner.db.fetch_multi_row(known).await? {
            let mut columns = row.columns();
            seen.insert(columns.text("version")?, columns.unsigned("seen_at")?);
        }
        let new: Vec<String> = versions.into_iter().filter(|version| !seen.contains_key(version)).collect();
        let now = self.now_ms();
        // A package can be listed though nothing can be written. What is not remembered is new again the next time.
        if remembers && let Err(problem) = self.write_first_seen(repository, name, &new, now).await {
            tracing::warn!(%problem, %repository, "the first sight of versions could not be written");
        }
        let now = u64::try_from(now).unwrap_or_default();
        seen.extend(new.into_iter().map(|version| (version, now)));
        Ok(seen)
    }

    /// When the server first saw this version, in ms since 1970; none if it does not remember that.
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

    /// Keeps the newest `most` rows of a repository and those of versions that it shows; returns how many are gone. A version that is
    /// forgotten is new again when it is next listed.
    #[boxed]
    pub async fn forget_first_seen(&self, repository: RepositoryId, most: i64) -> Result<u64, StoreError> {
        let rows = self.inner.db.fetch_uncounted(NEWEST_SURPLUS, values![repository.0, most]).await?;
        let Some(row) = rows.first() else { return Ok(0) };
        let (last, at_once) = (row.columns().int("seen_at")?, i64::try_from(AT_ONCE).unwrap_or(i64::MAX));
        let mut gone = 0;
        loop {
            let values = values![repository.0, last, at_once];
            match self.inner.db.execute_slowly(FORGET, values).await? {
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
        // The search for surplus rows passes all others of the repository: it is not made with each list, and nobody waits for it.
        let added = u32::try_from(versions.len()).unwrap_or(u32::MAX);
        if rand::random_range(0..BETWEEN_LOOKS) < added {
            let store = self.clone();
            tokio::spawn(async move {
                if let Err(problem) = store.forget_first_seen(repository, MOST).await {
                    tracing::warn!(%problem, %repository, "the oldest first sights of versions could not be removed");
                }
            });
        }
        Ok(())
    }
}
