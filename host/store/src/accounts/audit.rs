//! Who did what to what, when and from where, and what was refused to whom.
//!
//! A change and its event are written in one transaction. Refusals are counted (`refusals`), one row for each credential,
//! address, code and minute.

use crate::accounts::event::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, first_id_at};
use crate::store::Store;

/// A remembered event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRow {
    /// Rises with time.
    pub id: i64,
    /// When, in ms since 1970; of a refusal, when it was last counted.
    pub at: i64,
    /// What.
    pub event: AuditEvent,
    /// The code by which it was refused; none: it was done.
    pub refused: Option<String>,
    /// How often: 1 of what was done.
    pub times: u64,
}

/// Which events are asked for; a field that is none matches all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditFilter {
    /// By this actor.
    pub actor: Option<String>,
    /// Of this action.
    pub action: Option<String>,
    /// By this credential.
    pub credential: Option<String>,
    /// Refused, or done.
    pub refused: Option<bool>,
    /// At this time or later, in ms since 1970.
    pub since: Option<i64>,
    /// Before this time, in ms since 1970.
    pub until: Option<i64>,
}

impl Store {
    /// Remembers an event that goes with no change.
    #[boxed]
    pub async fn audit(&self, event: AuditEvent) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        remember(&mut transaction, Some(event)).await?;
        transaction.commit().await
    }

    /// The newest events first, those before the identifier `before`, at most `limit`.
    #[boxed]
    pub async fn audit_events(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        // Identifiers rise with time, so that the index finds the beginning of a time too.
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

    /// Forgets events of before `before` (ms since 1970), at most `limit` of them: how many. A bounded number at a time, so that
    /// no request waits long for the database.
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
