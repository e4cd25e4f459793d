//! Who did what to what, when and from where.

use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id, now_ms};
use crate::store::Store;

/// Something that happened and is to be remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEvent {
    /// Where.
    pub organization: OrganizationId,
    /// Who: an e-mail, or the name of a token.
    pub actor: String,
    /// What: `create_token`, `sign_in`, …
    pub action: String,
    /// To what.
    pub subject: String,
    /// From which address.
    pub address: String,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Further facts, as JSON. No secrets.
    pub detail: String,
}

/// A remembered event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRow {
    /// Rises with time.
    pub id: i64,
    /// When, in ms since 1970.
    pub at: i64,
    /// What.
    pub event: AuditEvent,
}

impl Store {
    /// Remembers an event that goes with no change.
    pub async fn audit(&self, event: AuditEvent) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        remember(&mut transaction, Some(event)).await?;
        transaction.commit().await
    }

    /// The newest events first, those before the identifier `before`, at most `limit`.
    pub async fn audit_events(
        &self,
        organization: OrganizationId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let values = values![organization.0, before.unwrap_or(i64::MAX), i64::from(limit)];
        let rows = self.inner.db.fetch(LIST, values).await?;
        rows.iter().map(|row| audit_row(organization, row)).collect()
    }
}

const INSERT: &str = "INSERT INTO audit_events (id, organization, at, actor, action, subject, address, allowed, detail) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const LIST: &str = "SELECT id, at, actor, action, subject, address, allowed, detail FROM audit_events \
    WHERE organization = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

/// Writes an event together with what it tells of.
pub(super) async fn remember(
    transaction: &mut Transaction,
    event: Option<AuditEvent>,
) -> Result<(), StoreError> {
    let Some(event) = event else { return Ok(()) };
    let AuditEvent { organization, actor, action, subject, address, allowed, detail } = event;
    let values =
        values![new_id(), organization.0, now_ms(), actor, action, subject, address, allowed, detail];
    transaction.execute(INSERT, values).await?;
    Ok(())
}

fn audit_row(organization: OrganizationId, row: &Row) -> Result<AuditRow, StoreError> {
    let mut columns = row.columns();
    let (id, at) = (columns.int()?, columns.int()?);
    let (actor, action, subject) = (columns.text()?, columns.text()?, columns.text()?);
    let (address, allowed, detail) = (columns.text()?, columns.bool()?, columns.text()?);
    Ok(AuditRow {
        id,
        at,
        event: AuditEvent { organization, actor, action, subject, address, allowed, detail },
    })
}
