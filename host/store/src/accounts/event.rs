//! Events of the audit log. Each is written in the transaction of its change.

use crate::db::{MultiRow, Transaction, Value};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id, now_ms};

/// Audit record of an action. No field may hold a secret.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditEvent {
    pub organization: OrganizationId,
    /// E-mail address of the member, or the name of the token.
    pub actor: String,
    /// Identifier of the credential: `token:ID`, `session:…`, …; never a part of its secret.
    pub credential: String,
    /// Action: `create_token`, `sign_in`, `publish`, …
    pub action: String,
    pub subject: String,
    /// Client address; empty for an action on the command line of this machine.
    pub address: String,
    pub request_id: String,
    /// Further details as a JSON object, or empty.
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

/// Returns one statement that inserts all these events.
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
