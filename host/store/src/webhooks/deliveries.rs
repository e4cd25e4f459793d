//! Deliveries of webhooks for display, test events and redelivery.

use std::collections::HashMap;

use super::event::{NewDelivery, insert_deliveries};
use super::queue::over;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{DeliveryId, WebhookId};
use crate::store::Store;

const COLUMNS: &str = "id, event, kind, queue, delivered, at";
/// Maximum pending requested deliveries of one webhook.
const MAX_REQUESTED: i64 = 100;

/// One attempt to deliver an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Try {
    /// Start time, in ms since 1970.
    pub at: i64,
    /// Status of the response; `None` without a response.
    pub status: Option<u16>,
    /// Beginning of the response body.
    pub answer: Option<String>,
    /// Reason for people why there was no response, or why the response is a failure.
    pub error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryState {
    /// The delivery waits for its turn or for a retry.
    Pending,
    Delivered,
    /// The delivery failed and is not retried.
    Failed,
}

/// Delivery of an event to a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    /// Id of the event, the same for every webhook.
    pub event: i64,
    /// Name of the kind of event.
    pub kind: String,
    pub state: DeliveryState,
    /// Time of the event, in ms since 1970.
    pub at: i64,
    /// The last fifty tries, in order.
    pub tries: Vec<Try>,
}

impl Store {
    /// Deliveries of a webhook, the newest first, before the identifier `before`, at most `limit`.
    #[boxed]
    pub async fn list_deliveries(
        &self,
        hook: WebhookId,
        before: Option<DeliveryId>,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhook_deliveries WHERE hook = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        );
        let before = before.map_or(i64::MAX, |before| before.0);
        let rows = self.inner.db.fetch(sql, values![hook.0, before, i64::from(limit)]).await?;
        self.with_tries(rows.iter().map(delivery).collect::<Result<_, _>>()?).await
    }

    /// One delivery of a webhook.
    #[boxed]
    pub async fn find_delivery(
        &self,
        hook: WebhookId,
        id: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE hook = $1 AND id = $2");
        let row = self.inner.db.fetch_one(sql, values![hook.0, id.0]).await?;
        let found = row.as_ref().map(delivery).transpose()?;
        Ok(self.with_tries(found.into_iter().collect()).await?.pop())
    }

    /// Sends a test event to a webhook once; `None` if too many such deliveries are pending.
    #[boxed]
    pub async fn test_webhook(
        &self,
        hook: WebhookId,
        subject: String,
        data: &serde_json::Value,
        audit: Option<AuditEvent>,
    ) -> Result<Option<Delivery>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "SELECT COUNT(*) AS requested FROM webhook_deliveries WHERE hook = $1 AND queue = 2";
        let requested = transaction.fetch_one(sql, values![hook.0]).await?;
        if requested.map_or(Ok(0), |row| row.columns().int("requested"))? >= MAX_REQUESTED {
            return Ok(None);
        }
        let test = NewDelivery::test(hook, subject, data);
        transaction.execute_each(vec![insert_deliveries(&[test], self.now_ms())]).await?;
        let sql =
            format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE hook = $1 ORDER BY id DESC LIMIT 1");
        let made = transaction.fetch_one(sql, values![hook.0]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify([hook]);
        made.as_ref().map(delivery).transpose()
    }

    /// Tries a delivery immediately. A pending delivery keeps its turn; a completed one is sent
    /// once more, with a single try. `None` if the delivery does not exist.
    #[boxed]
    pub async fn redeliver(
        &self,
        hook: WebhookId,
        id: DeliveryId,
        audit: Option<AuditEvent>,
    ) -> Result<Option<Delivery>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "UPDATE webhook_deliveries SET due_at = $3, queue = COALESCE(queue, 2) WHERE hook = $1 AND id = $2";
        if transaction.execute(sql, values![hook.0, id.0, self.now_ms()]).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify([hook]);
        self.find_delivery(hook, id).await
    }

    async fn with_tries(&self, mut deliveries: Vec<Delivery>) -> Result<Vec<Delivery>, StoreError> {
        let ids: Vec<i64> = deliveries.iter().map(|delivery| delivery.id.0).collect();
        let before = "SELECT delivery, number, at, status, answer, error FROM webhook_tries WHERE delivery IN (VALUES ";
        let rows = self.inner.db.fetch_multi_row(over(before, &ids, ") ORDER BY delivery, number")).await?;
        let mut tries: HashMap<i64, Vec<Try>> = HashMap::new();
        for row in &rows {
            let mut columns = row.columns();
            let delivery = columns.int("delivery")?;
            let (at, status) = (columns.int("at")?, columns.opt_int("status")?);
            let status = status.and_then(|status| u16::try_from(status).ok());
            let (answer, error) = (columns.opt_text("answer")?, columns.opt_text("error")?);
            tries.entry(delivery).or_default().push(Try { at, status, answer, error });
        }
        for delivery in &mut deliveries {
            delivery.tries = tries.remove(&delivery.id.0).unwrap_or_default();
        }
        Ok(deliveries)
    }
}

fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    let mut columns = row.columns();
    let (id, event, kind) = (DeliveryId(columns.int("id")?), columns.int("event")?, columns.text("kind")?);
    let state = match (columns.opt_int("queue")?, columns.int("delivered")?) {
        (Some(_), _) => DeliveryState::Pending,
        (None, 0) => DeliveryState::Failed,
        (None, _) => DeliveryState::Delivered,
    };
    Ok(Delivery { id, event, kind, state, at: columns.int("at")?, tries: Vec::new() })
}
