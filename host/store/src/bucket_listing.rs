//! Removal of bucket objects that no row knows. They appear when a database is restored to an
//! earlier moment.
//!
//! Every object has a row (blob or orphan) before its first byte is written. So this module can
//! remove an object that is older than the grace period and has no row.
//!
//! The age comes from the bucket's own clock. A listing costs one request for each thousand
//! objects, so only one server lists in each grace period. That server holds one page in memory at
//! a time.

use std::time::Duration;

use futures::StreamExt;

use crate::blobs::objects::Objects;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// Objects looked up in one statement.
const PAGE: usize = 1000;
/// Maximum time between two listings.
const LONGEST: Duration = Duration::from_hours(24);
/// Row of `meta` with the start time of the last listing, in ms by the database's clock.
pub(crate) const LISTED: &str = "objects_listed_at";

impl Store {
    /// Removes unknown objects if a listing is due; returns how many. The first listing happens one
    /// grace period after the first call. This delay gives the operator time to notice a bucket
    /// that is shared by mistake.
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
            tracing::info!(objects = swept, "removed objects that the database does not reference");
        }
        Ok(swept)
    }

    /// Claims the listing if it is due and no other server has begun it.
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
