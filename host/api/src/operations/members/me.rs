//! What a member sees of its own organization.

use packhouse_identity::access::Rights;
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::error::ApiError;
use crate::operations::Actor;

/// Rows read at a time.
const PAGE: u32 = 500;

/// The actor's organization, and what the actor may do in its repositories.
pub struct Me {
    /// The organization's id.
    pub organization: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its public address.
    pub base_url: String,
    /// The repositories in which the actor has any right.
    pub repositories: Vec<Reachable>,
}

/// A repository and what the actor may do there.
pub struct Reachable {
    /// The repository.
    pub row: RepositoryRow,
    /// What the actor may do there.
    pub rights: Rights,
}

/// The actor's organization and repositories.
pub async fn me(actor: &Actor) -> Result<Me, ApiError> {
    actor.judged_own();
    let id = actor.organization();
    let organizations = actor.app.store.organizations().await?;
    let organization = organizations.into_iter().find(|organization| organization.id == id);
    let mut repositories = Vec::new();
    let mut after = None;
    loop {
        let page = actor.app.store.list_repositories(id, after, PAGE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < PAGE as usize;
        let reachable = |row: RepositoryRow| Reachable { rights: actor.permissions().rights(row.id), row };
        let any = |Reachable { rights, .. }: &Reachable| rights.read || rights.publish || rights.delete;
        repositories.extend(page.into_iter().map(reachable).filter(any));
        if last {
            break;
        }
    }
    Ok(Me {
        organization: id,
        name: organization.as_ref().map(|row| row.name.clone()).unwrap_or_default(),
        base_url: organization.and_then(|row| row.base_url).unwrap_or_else(|| actor.app.base_url()),
        repositories,
    })
}
