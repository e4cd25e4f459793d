//! The queue of a hook: who delivers to it, and what is to go out next.

use super::event::TEST_EVENT;
use crate::boxed;
use crate::db::{MultiRow, Row, Value, values};
use crate::error::StoreError;
use crate::ids::{DeliveryId, OrganizationId, WebhookId};
use crate::store::Store;

/// Hooks with something to be told, at which no server is.
const WAITING: &str = "SELECT h.id FROM webhooks h WHERE h.claimed_until <= $1 AND h.deleted_at IS NULL \
    AND (EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook = h.id AND d.queue = 2) \
    OR (h.state = 'active' AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.hook = h.id AND d.queue = 1))) ORDER BY h.id";
/// The lanes of a hook in which something waits, found one after the other by the index, however much waits in each.
const LANES: &str = "WITH RECURSIVE lanes (lane) AS (SELECT MIN(f.lane) FROM webhook_deliveries f WHERE f.hook = $1 AND f.queue = 1 \
    AND f.lane > $2 UNION ALL SELECT (SELECT MIN(g.lane) FROM webhook_deliveries g WHERE g.hook = $1 AND g.queue = 1 \
    AND g.lane > lanes.lane) FROM lanes WHERE lanes.lane IS NOT NULL)";
/// What comes first in each lane.
const HEADS: &str = "FROM lanes JOIN webhook_deliveries d ON d.id = (SELECT e.id FROM webhook_deliveries e WHERE e.hook = $1 \
    AND e.queue = 1 AND e.lane = lanes.lane ORDER BY e.place, e.id LIMIT 1)";
const COLUMNS: &str =
    "d.id, d.event, d.kind, d.subject, d.at, d.data, d.lane, d.queue, d.since, d.failures, d.tries";

/// A hook that this server delivers to at present.
#[derive(Clone)]
pub struct HookAtWork {
    /// Its identifier.
    pub id: WebhookId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// The organization's public address, where it has one.
    pub base_url: Option<String>,
    /// Where it listens.
    pub url: String,
    /// Sealed.
    pub secret: String,
    /// Whether it is told what waits for its turn, and not only what somebody asked for.
    pub active: bool,
    /// An e-mail.
    pub created_by: String,
}

/// A delivery whose turn it is.
#[derive(Clone, Debug)]
pub struct DueDelivery {
    /// Its row.
    pub id: DeliveryId,
    /// The same for every hook and every try.
    pub event: i64,
    /// The event's name.
    pub kind: String,
    /// To what it happened.
    pub subject: String,
    /// When it happened, in ms since 1970.
    pub at: i64,
    /// A JSON object.
    pub data: String,
    /// What waits for it.
    pub lane: i64,
    /// Whether somebody asked for this one try: it is not tried again.
    pub once: bool,
    /// When it was first tried in vain, in ms since 1970, since the hook was last told again.
    pub since: Option<i64>,
    /// How often it was tried in vain since then.
    pub failures: u32,
    /// How often it was tried in all.
    pub tries: i64,
}

impl Store {
    /// Hooks that something was written for through this handle since the last call, once there are some.
    #[boxed]
    pub async fn webhooks_rung(&self) -> Vec<WebhookId> {
        self.inner.bell.heard().await.into_iter().collect()
    }

    /// Hooks with something to be told, at which no server is.
    #[boxed]
    pub async fn webhooks_waiting(&self) -> Result<Vec<WebhookId>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(WAITING, values![self.now_ms()]).await?;
        rows.iter().map(|row| row.columns().int("id").map(WebhookId)).collect()
    }

    /// Takes over what the only process of this database left behind: with SQLite nobody else can be at a hook when a server starts.
    #[boxed]
    pub async fn forget_webhook_claims(&self) -> Result<(), StoreError> {
        if self.inner.db.is_shared() {
            return Ok(());
        }
        let sql = "UPDATE webhooks SET claimed_until = 0 WHERE claimed_until > 0";
        self.inner.db.execute(sql, values![]).await.map(drop)
    }

    /// Claims a hook for whoever has the number `claim`, for `lasts_ms`; false when another server is at it.
    #[boxed]
    pub async fn claim_webhook(&self, id: WebhookId, claim: i64, lasts_ms: i64) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let sql = "UPDATE webhooks SET claim = $2, claimed_until = $3 WHERE id = $1 AND deleted_at IS NULL \
                   AND (claimed_until <= $4 OR claim = $2)";
        let values = values![id.0, claim, now.saturating_add(lasts_ms), now];
        Ok(self.write_of_hooks(sql, values).await? == 1)
    }

    /// Gives a claim back, so that any server may take it at once.
    #[boxed]
    pub async fn leave_webhook(&self, id: WebhookId, claim: i64) -> Result<(), StoreError> {
        let sql = "UPDATE webhooks SET claimed_until = 0 WHERE id = $1 AND claim = $2";
        self.write_of_hooks(sql, values![id.0, claim]).await.map(drop)
    }

    /// The hook as it is now; none when the claim is another's, or the hook is gone.
    #[boxed]
    pub async fn webhook_at_work(&self, id: WebhookId, claim: i64) -> Result<Option<HookAtWork>, StoreError> {
        let sql = "SELECT h.organization, o.base_url, h.url, h.secret, h.state, h.created_by FROM webhooks h \
                   JOIN organizations o ON o.id = h.organization \
                   WHERE h.id = $1 AND h.claim = $2 AND h.claimed_until > $3 AND h.deleted_at IS NULL";
        let rows = self.inner.db.fetch_uncounted(sql, values![id.0, claim, self.now_ms()]).await?;
        let at_work = |row: &Row| {
            let mut columns = row.columns();
            Ok(HookAtWork {
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

    /// What somebody asked for, the oldest first, at most `limit`.
    #[boxed]
    pub async fn asked_deliveries(
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

    /// What is due, of each lane the first at most, in the order of the lanes behind `after`; at most `limit`.
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

    /// When the next of those that wait for their turn is due, in ms since 1970; none when nothing waits.
    #[boxed]
    pub async fn next_delivery_at(&self, hook: WebhookId) -> Result<Option<i64>, StoreError> {
        let sql = format!("{LANES} SELECT MIN(d.due_at) AS due_at {HEADS}");
        let rows = self.inner.db.fetch_uncounted(sql, values![hook.0, i64::MIN]).await?;
        rows.first().map_or(Ok(None), |row| row.columns().opt_int("due_at"))
    }

    /// A write that changes nothing that requests are answered by.
    async fn write_of_hooks(&self, sql: &'static str, values: Vec<Value>) -> Result<u64, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let expected = self.inner.snapshots.expect(self.inner.db.generation());
        let changed = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        expected.carry_unchanged(self.inner.db.generation());
        Ok(changed)
    }
}

/// What is due of a hook, for one try each.
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

/// The statements that a look at the queues makes, for what compares plans.
#[cfg(test)]
pub(crate) fn queue_statements() -> Vec<String> {
    vec![
        format!("{LANES} SELECT {COLUMNS} {HEADS} WHERE d.due_at <= $3 LIMIT $4"),
        format!("{LANES} SELECT MIN(d.due_at) AS due_at {HEADS}"),
    ]
}

/// Rows of one column.
pub(super) fn ids(rows: &[i64]) -> Vec<[Value; 1]> {
    rows.iter().map(|id| [Value::from(*id)]).collect()
}

/// A statement over rows of one column.
pub(super) fn over(before: &'static str, rows: &[i64], after: &'static str) -> MultiRow {
    MultiRow::new(before, ids(rows), after)
}
