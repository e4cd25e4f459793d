//! Policies that the actor may manage. An actor without manage-repositories manages a policy that
//! applies only to repositories in which the actor has the right `manage`.

use std::collections::HashSet;

use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::RepositoryId;

use super::{Policy, Reach};
use crate::error::ApiError;
use crate::operations::{Actor, repositories};

/// Checks that the actor manages every repository of a rule; otherwise 403
/// `insufficient_permissions`, also if a repository does not exist.
pub(super) async fn judge_reach(actor: &Actor, reach: &Reach) -> Result<(), ApiError> {
    repositories::manages_some(actor)?;
    let is_managed = match reach {
        Reach::All => actor.permissions().holds(ManageRepositories),
        Reach::Only(_) if actor.permissions().holds(ManageRepositories) => true,
        Reach::Only(ids) => {
            let rows = actor.app.store.find_repositories(actor.organization(), ids).await?;
            rows.len() == ids.len() && rows.iter().all(|row| actor.manages(row))
        }
    };
    if is_managed { Ok(()) } else { actor.needs(ManageRepositories) }
}

/// Returns those of the policies that the actor may manage. A repository that was deleted does not
/// matter.
pub(super) async fn only_managed(actor: &Actor, policies: Vec<Policy>) -> Result<Vec<Policy>, ApiError> {
    if actor.permissions().holds(ManageRepositories) {
        return Ok(policies);
    }
    let mut ids: Vec<RepositoryId> = policies.iter().flat_map(named).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    let (managed, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| actor.manages(row));
    let managed: HashSet<RepositoryId> = managed.into_iter().map(|row| row.id).collect();
    let others: HashSet<RepositoryId> = others.into_iter().map(|row| row.id).collect();
    let is_managed = |policy: &Policy| {
        let ids = named(policy);
        ids.iter().any(|id| managed.contains(id)) && !ids.iter().any(|id| others.contains(id))
    };
    Ok(policies.into_iter().filter(is_managed).collect())
}

/// Repositories that a policy lists; none if it applies to all.
fn named(policy: &Policy) -> &[RepositoryId] {
    match &policy.rule.repositories {
        Reach::All => &[],
        Reach::Only(ids) => ids,
    }
}
