//! Refused credentials, counted: one row for each credential, address, code and minute, so that refusals cost no write each and
//! fill no table.

use std::collections::HashMap;
use std::time::Duration;

use super::DeferredWrite;
use crate::db::{Transaction, Value, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id};

/// A refusal, of what was presented as a credential.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// Those of one minute, in minutes since 1970.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct RefusalsOfMinute(pub(crate) i64, pub(crate) Refusal);

/// How often, and when last.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub(crate) times: u64,
    /// In ms since 1970.
    pub(crate) last: i64,
}

impl DeferredWrite for RefusalsOfMinute {
    type Value = Count;
    const INTERVAL: Duration = Duration::from_secs(20);
    /// A stranger chooses addresses, and so makes counts: further ones are counted together, without an address and a credential.
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
        // One order for all, so that two servers never wait for each other.
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

type Place = (i64, i64, String, String, String);

/// The row and its unique key; none where the organization is not known.
fn row(
    RefusalsOfMinute(minute, refusal): &RefusalsOfMinute,
    count: &Count,
    only: Option<OrganizationId>,
) -> Option<(Place, [Value; 14])> {
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
    fn a_stranger_makes_no_more_counts_than_there_is_room_for() {
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
