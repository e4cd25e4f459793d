//! Audit log: actions and refusals, each with its actor, subject, time and address.
//!
//! A change and its event are written in one transaction. The table `refusals` counts refusals,
//! with one row for each credential, address, code and minute.

use crate::accounts::event::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, first_id_at};
use crate::store::Store;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRow {
    /// Identifier, which grows with time.
    pub id: i64,
    /// Time in ms since 1970. For a refusal: when it was last counted.
    pub at: i64,
    pub event: AuditEvent,
    /// Error code of the refusal; `None` if the action was carried out.
    pub refused: Option<String>,
    /// Number of refusals; 1 for an action that was carried out.
    pub times: u64,
}

/// Filter for audit events. A field that is `None` matches all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub credential: Option<String>,
    /// True for refusals only, false for completed actions only.
    pub refused: Option<bool>,
    /// Earliest time (inclusive), in ms since 1970.
    pub since: Option<i64>,
    /// Latest time (exclusive), in ms since 1970.
    pub until: Option<i64>,
}

impl Store {
    /// Records an event that belongs to no change.
    #[boxed]
    pub async fn audit(&self, event: AuditEvent) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        remember(&mut transaction, Some(event)).await?;
        transaction.commit().await
    }

    /// Lists at most `limit` events before the identifier `before`, the newest first.
    #[boxed]
    pub async fn audit_events(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        // Identifiers grow with time, so the index also finds where a period begins.
        let since = filter.since.unwrap_or(0);
        let until = filter.until.unwrap_or(i64::MAX);
        let values = values![
            organization.0,
            before.unwrap_or(i64::MAX),
            first_id_at(since),
            since,
            until,
            filter.actor.as_deref(),
            filter.action.as_deref(),
            filter.credential.as_deref(),
            filter.refused.map(i64::from),
            i64::from(limit),
        ];
        let rows = self.inner.db.fetch(LIST, values).await?;
        rows.iter().map(|row| audit_row(organization, row)).collect()
    }

    /// Deletes at most `limit` events older than `before` (ms since 1970) and returns their number.
    /// The bound keeps each deletion short, so that requests do not wait for the database.
    #[boxed]
    pub async fn forget_audit(&self, before: i64, limit: u32) -> Result<u64, StoreError> {
        self.inner.db.execute(FORGET, values![first_id_at(before), i64::from(limit)]).await
    }
}

const LIST: &str = "SELECT id, at, actor, credential, action, subject, address, request_id, refused, times, detail \
    FROM audit_events WHERE organization = $1 AND id < $2 AND id >= $3 AND at >= $4 AND at < $5 \
    AND ($6 IS NULL OR actor = $6) AND ($7 IS NULL OR action = $7) AND ($8 IS NULL OR credential = $8) \
    AND ($9 IS NULL OR allowed = 1 - $9) ORDER BY id DESC LIMIT $10";
const FORGET: &str = "DELETE FROM audit_events WHERE id IN \
    (SELECT id FROM audit_events WHERE id < $1 ORDER BY id LIMIT $2)";

fn audit_row(organization: OrganizationId, row: &Row) -> Result<AuditRow, StoreError> {
    let mut columns = row.columns();
    let (id, at) = (columns.int("id")?, columns.int("at")?);
    let event = AuditEvent {
        organization,
        actor: columns.text("actor")?,
        credential: columns.text("credential")?,
        action: columns.text("action")?,
        subject: columns.text("subject")?,
        address: columns.text("address")?,
        request_id: columns.text("request_id")?,
        detail: String::new(),
    };
    let (refused, times) = (columns.opt_text("refused")?, columns.unsigned("times")?);
    Ok(AuditRow { id, at, event: AuditEvent { detail: columns.text("detail")?, ..event }, refused, times })
}
