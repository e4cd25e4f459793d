//! Queue of a webhook: the server that delivers to it, and the next deliveries.

use super::event::TEST_EVENT;
use crate::boxed;
use crate::db::{MultiRow, Row, Value, values};
use crate::error::StoreError;
use crate::ids::{DeliveryId, OrganizationId, WebhookId};
use crate::store::Store;

/// Webhooks with pending deliveries that no server has claimed.
const WAITING: &str = "SELECT h.id FROM webhooks h WHERE h.claimed_until <= $1 AND h.deleted_at IS NULL \
    AND (EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook = h.id AND d.queue = 2) \
    OR (h.state = 'active' AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook = h.id AND d.queue = 1))) ORDER BY h.id";
/// Lanes of a webhook with pending deliveries. The index finds one lane after the other, at a cost
/// independent of the number of deliveries in each.
const LANES: &str = "WITH RECURSIVE lanes (lane) AS (SELECT MIN(f.lane) FROM webhook_deliveries f WHERE f.hook = $1 AND f.queue = 1 \
    AND f.lane > $2 UNION ALL SELECT (SELECT MIN(g.lane) FROM webhook_deliveries g WHERE g.hook = $1 AND g.queue = 1 \
    AND g.lane > lanes.lane) FROM lanes WHERE lanes.lane IS NOT NULL)";
/// First delivery of each lane.
const HEADS: &str = "FROM lanes JOIN webhook_deliveries d ON d.id = (SELECT e.id FROM webhook_deliveries e WHERE e.hook = $1 \
    AND e.queue = 1 AND e.lane = lanes.lane ORDER BY e.place, e.id LIMIT 1)";
const COLUMNS: &str =
    "d.id, d.event, d.kind, d.subject, d.at, d.data, d.lane, d.queue, d.since, d.failures, d.tries";

/// A webhook that this server has claimed.
#[derive(Clone)]
pub struct ClaimedWebhook {
    pub id: WebhookId,
    pub organization: OrganizationId,
    /// Public address of the organization, if it has one.
    pub base_url: Option<String>,
    /// URL that receives the events.
    pub url: String,
    /// Sealed secret that signs the deliveries.
    pub secret: String,
    /// True if all pending deliveries are sent; false if only requested ones are.
    pub active: bool,
    /// E-mail address of the creator.
    pub created_by: String,
}

/// A delivery that is due.
#[derive(Clone, Debug)]
pub struct DueDelivery {
    pub id: DeliveryId,
    /// Id of the event, the same for every webhook and every try.
    pub event: i64,
    /// Name of the kind of event.
    pub kind: String,
    pub subject: String,
    /// Time of the event, in ms since 1970.
    pub at: i64,
    /// Data of the event, a JSON object.
    pub data: String,
    /// Lane of the delivery, whose later deliveries wait for it.
    pub lane: i64,
    /// True if a user requested this delivery with a single try, so that it is not retried.
    pub once: bool,
    /// Time of the first failed try since the webhook was last resumed, in ms since 1970.
    pub since: Option<i64>,
    /// Number of failed tries since then.
    pub failures: u32,
    /// Number of all tries so far.
    pub tries: i64,
}

impl Store {
    /// Waits until this handle has written deliveries since the last call, and returns their
    /// webhooks.
    #[boxed]
    pub async fn notified_webhooks(&self) -> Vec<WebhookId> {
        self.inner.delivery_notifier.notified().await.into_iter().collect()
    }

    /// Webhooks with pending deliveries that no server has claimed.
    #[boxed]
    pub async fn webhooks_waiting(&self) -> Result<Vec<WebhookId>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(WAITING, values![self.now_ms()]).await?;
        rows.iter().map(|row| row.columns().int("id").map(WebhookId)).collect()
    }

    /// Releases the claims of an earlier process. This is safe with SQLite, where no other server
    /// can have a claim at the start.
    #[boxed]
    pub async fn forget_webhook_claims(&self) -> Result<(), StoreError> {
        if self.inner.db.is_shared() {
            return Ok(());
        }
        let sql = "UPDATE webhooks SET claimed_until = 0 WHERE claimed_until > 0";
        self.inner.db.execute(sql, values![]).await.map(drop)
    }

    /// Claims a webhook with the number `claim` for `lasts_ms`; false if another server has claimed
    /// it.
    #[boxed]
    pub async fn claim_webhook(&self, id: WebhookId, claim: i64, lasts_ms: i64) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let sql = "UPDATE webhooks SET claim = $2, claimed_until = $3 WHERE id = $1 AND deleted_at IS NULL \
                   AND (claimed_until <= $4 OR claim = $2)";
        let values = values![id.0, claim, now.saturating_add(lasts_ms), now];
        Ok(self.write_of_hooks(sql, values).await? == 1)
    }

    /// Releases a claim, so that any server may claim the webhook immediately.
    #[boxed]
    pub async fn leave_webhook(&self, id: WebhookId, claim: i64) -> Result<(), StoreError> {
        let sql = "UPDATE webhooks SET claimed_until = 0 WHERE id = $1 AND claim = $2";
        self.write_of_hooks(sql, values![id.0, claim]).await.map(drop)
    }

    /// Current state of the webhook; `None` if another server has claimed it, or if it is gone.
    #[boxed]
    pub async fn claimed_webhook(
        &self,
        id: WebhookId,
        claim: i64,
    ) -> Result<Option<ClaimedWebhook>, StoreError> {
        let sql = "SELECT h.organization, o.base_url, h.url, h.secret, h.state, h.created_by FROM webhooks h \
                   JOIN organizations o ON o.id = h.organization \
                   WHERE h.id = $1 AND h.claim = $2 AND h.claimed_until > $3 AND h.deleted_at IS NULL";
        let rows = self.inner.db.fetch_uncounted(sql, values![id.0, claim, self.now_ms()]).await?;
        let at_work = |row: &Row| {
            let mut columns = row.columns();
            Ok(ClaimedWebhook {
                id,
                organization: OrganizationId(columns.int("organization")?),
                base_url: columns.opt_text("base_url")?,
                url: columns.text("url")?,
                secret: columns.text("secret")?,
                active: columns.text("state")? == "active",
                created_by: columns.text("created_by")?,
            })
        };
        rows.first().map(at_work).transpose()
    }

    /// Requested deliveries, the oldest first, at most `limit`.
    #[boxed]
    pub async fn requested_deliveries(
        &self,
        hook: WebhookId,
        limit: u32,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhook_deliveries d WHERE d.hook = $1 AND d.queue = 2 ORDER BY d.lane, d.place, d.id LIMIT $2"
        );
        let rows = self.inner.db.fetch_uncounted(sql, values![hook.0, i64::from(limit)]).await?;
        rows.iter().map(due).collect()
    }

    /// Due deliveries, at most one of each lane, in the order of the lanes after `after`; at most
    /// `limit`.
    #[boxed]
    pub async fn due_deliveries(
        &self,
        hook: WebhookId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let sql = format!("{LANES} SELECT {COLUMNS} {HEADS} WHERE d.due_at <= $3 LIMIT $4");
        let values = values![hook.0, after, self.now_ms(), i64::from(limit)];
        let rows = self.inner.db.fetch_uncounted(sql, values).await?;
        rows.iter().map(due).collect()
    }

    /// Time at which the next pending delivery is due, in ms since 1970; `None` without one.
    #[boxed]
    pub async fn next_delivery_at(&self, hook: WebhookId) -> Result<Option<i64>, StoreError> {
        let sql = format!("{LANES} SELECT MIN(d.due_at) AS due_at {HEADS}");
        let rows = self.inner.db.fetch_uncounted(sql, values![hook.0, i64::MIN]).await?;
        rows.first().map_or(Ok(None), |row| row.columns().opt_int("due_at"))
    }

    /// Runs a write that does not affect results of look-ups.
    async fn write_of_hooks(&self, sql: &'static str, values: Vec<Value>) -> Result<u64, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let expected = self.inner.snapshots.expect(self.inner.db.generation());
        let changed = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        expected.carry_unchanged(self.inner.db.generation());
        Ok(changed)
    }
}

/// Reads a due delivery from its row.
pub(super) fn due(row: &Row) -> Result<DueDelivery, StoreError> {
    let mut columns = row.columns();
    let (id, event) = (DeliveryId(columns.int("id")?), columns.int("event")?);
    let (kind, subject) = (columns.text("kind")?, columns.text("subject")?);
    let (at, data, lane) = (columns.int("at")?, columns.text("data")?, columns.int("lane")?);
    let (queue, since) = (columns.opt_int("queue")?, columns.opt_int("since")?);
    let failures = u32::try_from(columns.unsigned("failures")?).unwrap_or(u32::MAX);
    let tries = columns.int("tries")?;
    let once = queue == Some(2) || kind == TEST_EVENT;
    Ok(DueDelivery { id, event, kind, subject, at, data, lane, once, since, failures, tries })
}

/// Statements of a queue look-up, for tests that compare plans.
#[cfg(test)]
pub(crate) fn queue_statements() -> Vec<String> {
    vec![
        format!("{LANES} SELECT {COLUMNS} {HEADS} WHERE d.due_at <= $3 LIMIT $4"),
        format!("{LANES} SELECT MIN(d.due_at) AS due_at {HEADS}"),
    ]
}

/// Converts ids to rows of one column.
pub(super) fn ids(rows: &[i64]) -> Vec<[Value; 1]> {
    rows.iter().map(|id| [Value::from(*id)]).collect()
}

/// Statement over rows of one column.
pub(super) fn over(before: &'static str, rows: &[i64], after: &'static str) -> MultiRow {
    MultiRow::new(before, ids(rows), after)
}
