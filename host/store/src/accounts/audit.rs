//! Who did what to what, when and from where.

use crate::error::StoreError;
use crate::ids::OrganizationId;
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
        let _ = event;
        unimplemented!()
    }

    /// The newest events first, those before the identifier `before`, at most `limit`.
    pub async fn audit_events(
        &self,
        organization: OrganizationId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let _ = (organization, before, limit);
        unimplemented!()
    }
}
