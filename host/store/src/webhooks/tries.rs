//! What became of tries, written as they end: several in one transaction.

use crate::boxed;
use crate::db::{MultiRow, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{DeliveryId, WebhookId};
use crate::store::Store;

use super::deliveries::Try;

/// Tries of one delivery that are kept.
const TRIES_KEPT: i64 = 50;

/// What became of one try.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Of which delivery.
    pub id: DeliveryId,
    /// How often it was tried before.
    pub tries: i64,
    /// What is kept of it.
    pub of_try: Try,
    /// Whether it arrived.
    pub delivered: bool,
    /// When it is tried again, in ms since 1970; none: never, and with `delivered` there is no need to.
    pub again_at: Option<i64>,
}

impl Store {
    /// Writes what became of tries, and renews the claim for `lasts_ms`. False when the claim is another's: nothing is written then.
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
        let kept = "INSERT INTO webhook_tries (delivery, number, at, status, answer, error) VALUES ";
        let rows = reported.iter().map(row).collect();
        transaction.execute_each(vec![MultiRow::new(kept, rows, " ON CONFLICT DO NOTHING")]).await?;
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
    if tries > TRIES_KEPT {
        let sql = "DELETE FROM webhook_tries WHERE delivery = $1 AND number <= $2";
        transaction.execute(sql, values![id.0, tries.saturating_sub(TRIES_KEPT)]).await?;
    }
    Ok(())
}
