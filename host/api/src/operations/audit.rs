//! Audit log: who did what, when, from where, and whether it was allowed.

use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{AuditFilter, AuditRow};

use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;

/// Returns a page of the events of the actor's organization, newest first. Needs
/// manage-owner-account.
pub async fn list(
    actor: &Actor,
    filter: &AuditFilter,
    page: PageRequest<i64>,
) -> Result<RowPage<AuditRow>, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    // The page includes the refusals that this server has counted so far.
    store.write_refusals().await?;
    Ok(page.cut(store.audit_events(organization, filter, page.after, page.one_further()).await?))
}
