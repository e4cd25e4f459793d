//! Names of packages that plugins must not request from an upstream. This is for plugins whose
//! request concerns many packages.

use packhouse_runtime::ServiceError;

use super::CallServices;
use crate::withheld_names;

/// Returns those of the names that must not be requested from an upstream in this call, in the
/// given order.
pub(super) async fn withheld(
    services: &CallServices,
    names: Vec<String>,
) -> Result<Vec<String>, ServiceError> {
    let facts = &services.caller.principal.facts;
    let (Some(target), Some(plugin)) = (&facts.repository, services.app.runtime.plugin(&services.format))
    else {
        return Ok(Vec::new());
    };
    let members = facts.members.iter().map(|member| &member.row).collect();
    let store = &services.app.store;
    let withheld = withheld_names::withheld(store, plugin.description(), target, members, &names).await?;
    Ok(names.into_iter().filter(|name| withheld.contains(name)).collect())
}
