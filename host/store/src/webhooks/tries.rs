//! Outcomes of delivery tries, written together for several tries.

use crate::boxed;
use crate::db::{MultiRow, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{DeliveryId, WebhookId};
use crate::store::Store;

use super::deliveries::Try;

/// Maximum number of tries retained for one delivery.
const MAX_TRIES: i64 = 50;

/// Outcome of one try of a delivery.
#[derive(Clone, Debug)]
pub struct Reported {
    pub id: DeliveryId,
    /// Number of tries before this one.
    pub tries: i64,
    /// Details of the try to be stored.
    pub of_try: Try,
    /// True if the delivery succeeded.
    pub delivered: bool,
    /// Time of the next try, in ms since 1970. `None` if the delivery succeeded or is not retried.
    pub again_at: Option<i64>,
}

impl Store {
    /// Writes outcomes of tries and renews the claim for `lasts_ms`. If another server has the
    /// claim, it writes nothing and returns false.
    #[boxed]
    pub async fn report_tries(
        &self,
        hook: WebhookId,
        claim: i64,
        lasts_ms: i64,
        reported: &[Reported],
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let expected = self.inner.snapshots.expect(self.inner.db.generation());
        let now = self.now_ms();
        let renew =
            "UPDATE webhooks SET claimed_until = $3 WHERE id = $1 AND claim = $2 AND deleted_at IS NULL";
        let renewed =
            transaction.execute(renew, values![hook.0, claim, now.saturating_add(lasts_ms)]).await?;
        if renewed == 0 {
            return Ok(false);
        }
        let insert = "INSERT INTO webhook_tries (delivery, number, at, status, answer, error) VALUES ";
        let rows = reported.iter().map(row).collect();
        transaction.execute_each(vec![MultiRow::new(insert, rows, " ON CONFLICT DO NOTHING")]).await?;
        for one in reported {
            settle(&mut transaction, one).await?;
        }
        transaction.commit().await?;
        expected.carry_unchanged(self.inner.db.generation());
        Ok(true)
    }
}

fn row(reported: &Reported) -> [Value; 6] {
    let Reported { id, tries, of_try, .. } = reported;
    [
        Value::from(id.0),
        Value::from(tries.saturating_add(1)),
        Value::from(of_try.at),
        Value::from(of_try.status.map(i64::from)),
        Value::from(of_try.answer.as_deref()),
        Value::from(of_try.error.as_deref()),
    ]
}

async fn settle(transaction: &mut Transaction, reported: &Reported) -> Result<(), StoreError> {
    let Reported { id, tries, of_try, delivered, again_at } = reported;
    let tries = tries.saturating_add(1);
    match again_at {
        Some(again_at) => {
            let sql = "UPDATE webhook_deliveries SET tries = $2, failures = failures + 1, since = COALESCE(since, $3), due_at = $4 \
                       WHERE id = $1";
            transaction.execute(sql, values![id.0, tries, of_try.at, *again_at]).await?;
        }
        None => {
            let sql = "UPDATE webhook_deliveries SET tries = $2, queue = NULL, delivered = $3 WHERE id = $1";
            transaction.execute(sql, values![id.0, tries, i64::from(*delivered)]).await?;
        }
    }
    if tries > MAX_TRIES {
        let sql = "DELETE FROM webhook_tries WHERE delivery = $1 AND number <= $2";
        transaction.execute(sql, values![id.0, tries.saturating_sub(MAX_TRIES)]).await?;
    }
    Ok(())
}
