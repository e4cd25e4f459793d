//! Who did what to what, when, from where, and whether it was allowed.

use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{AuditFilter, AuditRow};

use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;

/// A page of the events of the actor's organization, the newest first. Needs manage-owner-account.
pub async fn list(
    actor: &Actor,
    filter: &AuditFilter,
    page: PageRequest<i64>,
) -> Result<Listed<AuditRow>, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    // What this server counted so far belongs on the page.
    store.write_refusals().await?;
    Ok(page.cut(store.audit_events(organization, filter, page.after, page.one_further()).await?))
}
