//! What was told to a hook and what waits, as people see it; tests, and what is told again.

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
/// What somebody asked for and has not gone out yet, for one hook.
const ASKED_AT_ONCE: i64 = 100;

/// One try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Try {
    /// When it began, in ms since 1970.
    pub at: i64,
    /// The answer's status; none where there was no answer.
    pub status: Option<u16>,
    /// How the answer's body began.
    pub answer: Option<String>,
    /// Why there was no answer, or why it does not count, for people.
    pub error: Option<String>,
}

/// How far a delivery is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryState {
    /// It waits for its turn, or to be tried again.
    Pending,
    /// It arrived.
    Delivered,
    /// It did not arrive, and is not tried again.
    Failed,
}

/// An event on its way to a hook, or there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// Its row.
    pub id: DeliveryId,
    /// The same for every hook.
    pub event: i64,
    /// The event's name.
    pub kind: String,
    /// How far it is.
    pub state: DeliveryState,
    /// When the event happened, in ms since 1970.
    pub at: i64,
    /// The first try first; the last fifty.
    pub tries: Vec<Try>,
}

impl Store {
    /// A hook's deliveries, the newest first, those before the identifier `before`, at most `limit`.
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

    /// One of them.
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

    /// Sends a hook an event of no consequence, once; none when it has many such to come already.
    #[boxed]
    pub async fn test_webhook(
        &self,
        hook: WebhookId,
        subject: String,
        data: &serde_json::Value,
        audit: Option<AuditEvent>,
    ) -> Result<Option<Delivery>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "SELECT COUNT(*) AS asked FROM webhook_deliveries WHERE hook = $1 AND queue = 2";
        let asked = transaction.fetch_one(sql, values![hook.0]).await?;
        if asked.map_or(Ok(0), |row| row.columns().int("asked"))? >= ASKED_AT_ONCE {
            return Ok(None);
        }
        let test = NewDelivery::test(hook, subject, data);
        transaction.execute_each(vec![insert_deliveries(&[test], self.now_ms())]).await?;
        let sql =
            format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE hook = $1 ORDER BY id DESC LIMIT 1");
        let made = transaction.fetch_one(sql, values![hook.0]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring([hook]);
        made.as_ref().map(delivery).transpose()
    }

    /// Has a delivery tried at once. What waits for its turn keeps it; what is done goes out once more, for this one try. None when there
    /// is no such delivery.
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
        self.inner.bell.ring([hook]);
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
