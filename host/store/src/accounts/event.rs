//! An event of the audit log, and how it is written: in the transaction of its change.

use crate::db::{MultiRow, Transaction, Value};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id, now_ms};

/// Something that was done and is to be remembered. No field may hold a secret.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditEvent {
    /// Where.
    pub organization: OrganizationId,
    /// Who: an e-mail, or the name of a token.
    pub actor: String,
    /// By which credential: `token:ID`, `session:…`, …; never a part of its secret.
    pub credential: String,
    /// What: `create_token`, `sign_in`, `publish`, …
    pub action: String,
    /// To what.
    pub subject: String,
    /// From which address; empty: from the command line of the machine.
    pub address: String,
    /// In which request.
    pub request_id: String,
    /// Further facts, as a JSON object; empty: none.
    pub detail: String,
}

const INSERT: &str = "INSERT INTO audit_events (id, organization, at, actor, credential, action, subject, address, \
    request_id, allowed, detail) VALUES ";

/// Writes an event in the transaction of its change.
pub(crate) async fn remember(
    transaction: &mut Transaction,
    event: Option<AuditEvent>,
) -> Result<(), StoreError> {
    transaction.execute_each(vec![insert(event.iter())]).await?;
    Ok(())
}

/// Writes events in one statement.
pub(crate) fn insert<'a>(events: impl Iterator<Item = &'a AuditEvent>) -> MultiRow {
    let now = now_ms();
    let row = |event: &AuditEvent| {
        let text = |text: &str| Value::from(text);
        [
            Value::from(new_id()),
            Value::from(event.organization.0),
            Value::from(now),
            text(&event.actor),
            text(&event.credential),
            text(&event.action),
            text(&event.subject),
            text(&event.address),
            text(&event.request_id),
            Value::from(1),
            text(if event.detail.is_empty() { "{}" } else { &event.detail }),
        ]
    };
    MultiRow::new(INSERT, events.map(row).collect(), "")
}
