//! Deletion of old deliveries. Each transaction handles a bounded number of rows, so that publishes
//! do not wait long.

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{WebhookId, first_id_at};
use crate::store::Store;

/// Maximum rows that one transaction deletes.
const PIECE: i64 = 500;

/// Bounds of the queues of webhooks.
#[derive(Clone, Copy, Debug)]
pub struct QueueBounds {
    /// Events before this time (ms since 1970) are deleted once they are completed, or if the
    /// webhook is paused.
    pub before: i64,
    /// Maximum number of pending events of one webhook.
    pub most: u64,
}

const OLD: &str = "DELETE FROM webhook_deliveries WHERE id IN (SELECT d.id FROM webhook_deliveries d WHERE d.id < $1 \
    AND (d.queue IS NULL OR d.hook IN (SELECT h.id FROM webhooks h WHERE h.state = 'paused')) ORDER BY d.id LIMIT $2)";
const OF_DELETED: &str = "DELETE FROM webhook_deliveries WHERE id IN (SELECT d.id FROM webhook_deliveries d \
    WHERE d.hook IN (SELECT h.id FROM webhooks h WHERE h.deleted_at IS NOT NULL) LIMIT $1)";
const DELETED: &str = "DELETE FROM webhooks WHERE deleted_at IS NOT NULL \
    AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook = webhooks.id)";

impl Store {
    /// Deletes some old deliveries and those of deleted webhooks; returns true if there may be
    /// more.
    #[boxed]
    pub async fn shorten_deliveries(&self, bounds: QueueBounds) -> Result<bool, StoreError> {
        let db = &self.inner.db;
        // The check avoids a write, and thus a flush, if there are no webhooks.
        let any = "SELECT 1 AS one FROM webhooks LIMIT 1";
        if db.fetch_uncounted(any, values![]).await?.is_empty() {
            return Ok(false);
        }
        let old = db.execute(OLD, values![first_id_at(bounds.before), PIECE]).await?;
        let of_deleted = db.execute(OF_DELETED, values![PIECE]).await?;
        let more = [old, of_deleted].iter().any(|gone| i64::try_from(*gone) == Ok(PIECE));
        if !more {
            db.execute(DELETED, values![]).await?;
        }
        Ok(more)
    }

    /// Marks queues as full or as no longer full. Returns each changed webhook, with true if its
    /// queue is now full.
    #[boxed]
    pub async fn judge_queues(&self, bounds: QueueBounds) -> Result<Vec<(WebhookId, bool)>, StoreError> {
        let db = &self.inner.db;
        let list = "SELECT id, full_at FROM webhooks WHERE deleted_at IS NULL ORDER BY id";
        let rows = db.fetch_uncounted(list, values![]).await?;
        let read = |row: &Row| {
            let mut columns = row.columns();
            Ok((columns.int("id")?, columns.opt_int("full_at")?.is_some()))
        };
        let mut changed = Vec::new();
        for (id, was_full) in rows.iter().map(read).collect::<Result<Vec<_>, StoreError>>()? {
            // A queue that was full accepts events again once it is at most half full.
            let most = if was_full { bounds.most / 2 } else { bounds.most };
            let count = "SELECT COUNT(*) AS waiting FROM (SELECT 1 AS one FROM webhook_deliveries \
                         WHERE hook = $1 AND queue = 1 LIMIT $2) AS counted";
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let found = db.fetch_uncounted(count, values![id, most]).await?;
            let waiting = found.first().map_or(Ok(0), |row| row.columns().int("waiting"))?;
            let is_full = waiting >= most.max(1);
            if is_full != was_full {
                let at = is_full.then(|| self.now_ms());
                let set = "UPDATE webhooks SET full_at = $2 WHERE id = $1";
                db.execute(set, values![id, at]).await?;
                changed.push((WebhookId(id), is_full));
            }
        }
        Ok(changed)
    }
}
