//! Refusals of credentials: counted in memory, and written together now and then, so that whoever is refused costs no write and
//! fills no table. One row for each credential, address, code and minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::db::{Value, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id};
use crate::store::{Inner, Store};

/// How far behind the truth the table may be.
const EVERY: Duration = Duration::from_secs(20);
/// How many counts are kept between two writings. A stranger chooses addresses, and so makes counts: further ones are counted
/// together, without an address and a credential.
const MOST: usize = 10_000;

/// A refusal, of what was presented as a credential.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refusal {
    /// Where; none: where there is one organization alone, there, else nowhere.
    pub organization: Option<OrganizationId>,
    /// Whose the credential is, where it is known.
    pub actor: String,
    /// Its name, as in [`AuditEvent`](crate::AuditEvent); empty: nobody knows it.
    pub credential: String,
    /// From which address.
    pub address: String,
    /// The code of the answer.
    pub code: String,
}

impl Refusal {
    /// What stands for it once there are too many.
    fn in_general(self) -> Refusal {
        let nobody = String::new();
        Refusal { actor: nobody.clone(), credential: nobody.clone(), address: nobody, ..self }
    }
}

struct Count {
    times: u64,
    last: i64,
}

/// What is not yet written, by minute since 1970.
#[derive(Default)]
pub(crate) struct Refusals {
    counted: Mutex<HashMap<(i64, Refusal), Count>>,
}

impl Refusals {
    /// Starts the task that writes, which ends with the store.
    pub(crate) fn write_now_and_then(store: &Arc<Inner>) {
        let store = Arc::downgrade(store);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(inner) = store.upgrade() else { return };
                if let Err(problem) = (Store { inner }).write_refusals().await {
                    tracing::warn!(%problem, "refusals could not be written to the audit log");
                }
            }
        });
    }

    fn take(&self) -> HashMap<(i64, Refusal), Count> {
        std::mem::take(&mut *self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, minute: i64, refusal: Refusal, count: Count) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let full = counted.len() >= MOST;
        let mut key = (minute, refusal);
        if full && !counted.contains_key(&key) {
            key = (minute, key.1.in_general());
        }
        let known = counted.entry(key).or_insert(Count { times: 0, last: count.last });
        known.times = known.times.saturating_add(count.times);
        known.last = known.last.max(count.last);
    }
}

impl Store {
    /// Counts a refusal at `now` (ms since 1970). Costs no SQL: written every 20 s, and when the store is closed.
    pub fn refused(&self, refusal: Refusal, now: i64) {
        self.inner.refusals.add(now.div_euclid(60_000), refusal, Count { times: 1, last: now });
    }

    /// Writes what [`Store::refused`] counted. What cannot be written is kept for the next time.
    pub async fn write_refusals(&self) -> Result<(), StoreError> {
        let counted = self.inner.refusals.take();
        if counted.is_empty() {
            return Ok(());
        }
        let done = self.insert_refusals(&counted).await;
        if done.is_err() {
            counted
                .into_iter()
                .for_each(|((minute, refusal), count)| self.inner.refusals.add(minute, refusal, count));
        }
        done
    }

    async fn insert_refusals(&self, counted: &HashMap<(i64, Refusal), Count>) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let before = self.generation();
        let organizations =
            transaction.fetch("SELECT id FROM organizations ORDER BY id LIMIT 2", values![]).await?;
        let only = match organizations.as_slice() {
            [only] => Some(OrganizationId(only.columns().int()?)),
            _ => None,
        };
        let mut rows: Vec<_> = counted
            .iter()
            .filter_map(|((minute, refusal), count)| row(*minute, refusal, count, only))
            .collect();
        // One order for all, so that two servers never wait for each other.
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        transaction.execute_rows(INSERT, rows.into_iter().map(|(_, values)| values).collect(), ADD).await?;
        transaction.commit().await?;
        self.nothing_changed_since(before);
        Ok(())
    }
}

const INSERT: &str = "INSERT INTO audit_events (id, organization, at, actor, credential, action, subject, address, request_id, \
    allowed, refused, minute, times, detail) VALUES ";
const ADD: &str = " ON CONFLICT (organization, minute, credential, address, refused) WHERE minute IS NOT NULL \
    DO UPDATE SET times = audit_events.times + excluded.times, at = excluded.at";

type Place = (i64, i64, String, String, String);

/// The row with what makes it the only one of its kind; none where nobody knows whose it is.
fn row(
    minute: i64,
    refusal: &Refusal,
    count: &Count,
    only: Option<OrganizationId>,
) -> Option<(Place, [Value; 14])> {
    let organization = refusal.organization.or(only)?.0;
    let Refusal { actor, credential, address, code, .. } = refusal;
    let place = (organization, minute, credential.clone(), address.clone(), code.clone());
    let text = |text: &str| Value::from(text);
    let values = [
        Value::from(new_id()),
        Value::from(organization),
        Value::from(count.last),
        text(actor),
        text(credential),
        text("refused"),
        text(""),
        text(address),
        text(""),
        Value::from(0),
        text(code),
        Value::from(minute),
        Value::from(signed(count.times)),
        text("{}"),
    ];
    Some((place, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: usize) -> Refusal {
        Refusal {
            organization: Some(OrganizationId(1)),
            actor: "a@example.com".to_owned(),
            credential: "token:1".to_owned(),
            address: address.to_string(),
            code: "unauthorized".to_owned(),
        }
    }

    #[test]
    fn a_stranger_makes_no_more_counts_than_there_is_room_for() {
        let refusals = Refusals::default();
        for address in 0..MOST + 500 {
            refusals.add(1, refusal(address), Count { times: 1, last: 60_000 });
        }
        refusals.add(1, refusal(3), Count { times: 1, last: 61_000 });
        let counted = refusals.take();
        assert_eq!(counted.len(), MOST + 1);
        assert_eq!(counted.values().map(|count| count.times).sum::<u64>(), MOST as u64 + 501);
        assert_eq!(counted[&(1, refusal(0).in_general())].times, 500);
        let known = &counted[&(1, refusal(3))];
        assert_eq!((known.times, known.last), (2, 61_000));
    }
}
