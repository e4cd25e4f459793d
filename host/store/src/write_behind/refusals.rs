//! Counts of refused credentials. There is one row for each credential, address, code and minute.
//! So a refusal does not cause a write of its own, and refusals cannot fill the table.

use std::collections::HashMap;
use std::time::Duration;

use super::DeferredWrite;
use crate::db::{Transaction, Value, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id};

/// A refusal of a presented credential.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Refusal {
    /// Organization of the request. `None` stands for the only organization. Unless exactly one
    /// exists, the refusal gets no row.
    pub organization: Option<OrganizationId>,
    /// Owner of the credential, if known.
    pub actor: String,
    /// Name of the credential, as in [`AuditEvent`](crate::AuditEvent); empty if unknown.
    pub credential: String,
    /// Network address of the client.
    pub address: String,
    /// Error code of the response.
    pub code: String,
}

impl Refusal {
    /// Replacement for a refusal if there are too many different ones: a refusal without address
    /// and credential.
    fn in_general(self) -> Refusal {
        let nobody = String::new();
        Refusal { actor: nobody.clone(), credential: nobody.clone(), address: nobody, ..self }
    }
}

/// Refusals of one minute; the number is minutes since 1970.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct RefusalsOfMinute(pub(crate) i64, pub(crate) Refusal);

/// Number and time of the refusals.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub(crate) times: u64,
    /// Time of the last one, in ms since 1970.
    pub(crate) last: i64,
}

impl DeferredWrite for RefusalsOfMinute {
    type Value = Count;
    const INTERVAL: Duration = Duration::from_secs(20);
    /// Unauthenticated clients choose addresses and thus create rows. Beyond the limit, refusals
    /// are counted together, without address and credential.
    const CAPACITY: usize = 10_000;
    const NAME: &'static str = "refusals";

    fn merge(one: Count, other: Count) -> Count {
        Count { times: one.times.saturating_add(other.times), last: one.last.max(other.last) }
    }

    fn when_full(self) -> Option<RefusalsOfMinute> {
        Some(RefusalsOfMinute(self.0, self.1.in_general()))
    }

    async fn write(
        counted: &HashMap<RefusalsOfMinute, Count>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let organizations =
            transaction.fetch("SELECT id FROM organizations ORDER BY id LIMIT 2", values![]).await?;
        let only = match organizations.as_slice() {
            [only] => Some(OrganizationId(only.columns().int("id")?)),
            _ => None,
        };
        let mut rows: Vec<_> =
            counted.iter().filter_map(|(refusals, count)| row(refusals, count, only)).collect();
        // One global order, so that two servers never deadlock.
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        transaction
            .execute_rows(INSERT, rows.into_iter().map(|(_, values)| values).collect(), ADD)
            .await
            .map(drop)
    }
}

const INSERT: &str = "INSERT INTO audit_events (id, organization, at, actor, credential, action, subject, address, request_id, \
    allowed, refused, minute, times, detail) VALUES ";
const ADD: &str = " ON CONFLICT (organization, minute, credential, address, refused) WHERE minute IS NOT NULL \
    DO UPDATE SET times = audit_events.times + excluded.times, at = excluded.at";

type RefusalKey = (i64, i64, String, String, String);

/// Row and its unique key; `None` if the organization is unknown.
fn row(
    RefusalsOfMinute(minute, refusal): &RefusalsOfMinute,
    count: &Count,
    only: Option<OrganizationId>,
) -> Option<(RefusalKey, [Value; 14])> {
    let minute = *minute;
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
    use super::super::Pending;
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
    fn unauthenticated_clients_cannot_create_unlimited_counts() {
        const MOST: usize = RefusalsOfMinute::CAPACITY;
        let pending = Pending::default();
        for address in 0..MOST + 500 {
            pending.add(RefusalsOfMinute(1, refusal(address)), Count { times: 1, last: 60_000 });
        }
        pending.add(RefusalsOfMinute(1, refusal(3)), Count { times: 1, last: 61_000 });
        let counted = pending.take();
        assert_eq!(counted.len(), MOST + 1);
        assert_eq!(counted.values().map(|count| count.times).sum::<u64>(), MOST as u64 + 501);
        assert_eq!(counted[&RefusalsOfMinute(1, refusal(0).in_general())].times, 500);
        let known = &counted[&RefusalsOfMinute(1, refusal(3))];
        assert_eq!((known.times, known.last), (2, 61_000));
    }
}
