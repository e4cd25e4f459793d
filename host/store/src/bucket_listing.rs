//! Orphans of a bucket that are not even recorded: what was written after the moment to which a database was restored. Every
//! object has a row from before its first byte, as a blob or as an orphan; so one that has neither, and is older than the time of
//! grace, is nobody's.
//!
//! Their age is told by the bucket's own clock. A listing costs a request for each thousand objects, so there is one in each
//! time of grace, by whichever server comes first, and it is held in memory a page at a time.

use std::time::Duration;

use futures::StreamExt;

use crate::blobs::objects::Objects;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// Objects that are asked for in one statement.
const PAGE: usize = 1000;
/// The longest time between two listings.
const LONGEST: Duration = Duration::from_hours(24);
/// The row of `meta` that says when the last listing began, in ms by the database's clock.
pub(crate) const LISTED: &str = "objects_listed_at";

impl Store {
    /// Removes the objects that no row knows of, if it is time to look for them; how many. The first time is one time of grace
    /// after the first call, so that a bucket that is shared by mistake can be noticed.
    pub(crate) async fn sweep_bucket(&self, bucket: &Objects) -> Result<u64, StoreError> {
        if !self.claim_listing().await? {
            return Ok(0);
        }
        let swept = self.sweep_objects(bucket).await;
        if swept.is_err() {
            self.inner.db.execute("UPDATE meta SET value = '0' WHERE name = $1", values![LISTED]).await?;
        }
        swept
    }

    async fn sweep_objects(&self, bucket: &Objects) -> Result<u64, StoreError> {
        let now = bucket.now_ms().await.map_err(StoreError::storage)?;
        let mut pages = bucket.keys_until(now.saturating_sub(self.grace_ms())).chunks(PAGE);
        let mut swept = 0;
        while let Some(page) = pages.next().await {
            let keys: Vec<String> =
                page.into_iter().collect::<Result<_, _>>().map_err(StoreError::storage)?;
            swept += self.sweep_unnamed(&keys).await?;
        }
        if swept > 0 {
            tracing::info!(objects = swept, "removed objects that no row of the database knows of");
        }
        Ok(swept)
    }

    /// Whether it is time for a listing and no other server has begun it.
    async fn claim_listing(&self) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        if self.inner.db.execute(insert, values![LISTED, now.to_string()]).await? == 1 {
            return Ok(false);
        }
        let longest = i64::try_from(LONGEST.as_millis()).unwrap_or(i64::MAX);
        let due = now.saturating_sub(self.grace_ms().min(longest));
        let claim = "UPDATE meta SET value = $2 WHERE name = $1 AND CAST(value AS BIGINT) <= $3";
        Ok(self.inner.db.execute(claim, values![LISTED, now.to_string(), due]).await? == 1)
    }
}
