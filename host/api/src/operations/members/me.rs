//! The caller's own account and organization.

use packhouse_identity::Secret;
use packhouse_identity::access::Rights;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{MemberRow, OrganizationId, RepositoryRow, TeamRow};
use packhouse_wire::catalogue;

use crate::error::ApiError;
use crate::operations::{Actor, passwords};

/// Rows that are read at a time.
const PAGE: u32 = 500;

/// The actor's organization, and the actor's rights in its repositories.
pub struct Me {
    pub organization: OrganizationId,
    pub name: String,
    pub base_url: String,
    /// The actor's own permissions, including those that an owner of the first organization holds
    /// implicitly.
    pub permissions: Permissions,
    pub teams: Vec<TeamRow>,
    /// Own permissions together with those of all teams.
    pub effective: Permissions,
    /// Repositories in which the actor has any right.
    pub repositories: Vec<Reachable>,
}

/// Repository with the actor's rights.
pub struct Reachable {
    pub row: RepositoryRow,
    pub rights: Rights,
}

/// Returns the actor's organization and repositories.
pub async fn me(actor: &Actor) -> Result<Me, ApiError> {
    actor.judged_own();
    let id = actor.organization();
    let organizations = actor.app.store.organizations().await?;
    let organization = organizations.into_iter().find(|organization| organization.id == id);
    let base_url = actor.base_url(organization.as_ref());
    let mut repositories = Vec::new();
    let mut after = None;
    loop {
        let page = actor.app.store.list_repositories(id, after, PAGE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < PAGE as usize;
        let reachable = |row: RepositoryRow| Reachable { rights: actor.rights_in(&row), row };
        let any = |Reachable { rights, .. }: &Reachable| {
            rights.read || rights.publish || rights.delete || rights.manage
        };
        repositories.extend(page.into_iter().map(reachable).filter(any));
        if last {
            break;
        }
    }
    // A service account does not manage the server implicitly.
    let manages_server = actor.permissions().holds(Permission::ManageServer);
    Ok(Me {
        organization: id,
        name: organization.map(|row| row.name).unwrap_or_default(),
        base_url,
        permissions: Permissions::read(&actor.member().permissions).of_organization(manages_server),
        teams: super::teams(actor, actor.member()).await?,
        effective: actor.permissions().clone(),
        repositories,
    })
}

/// Changes to the member's own account; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct OwnChange {
    pub name: Option<String>,
    /// New password, and the current one.
    pub password: Option<(Secret, Secret)>,
}

/// Changes the actor's own name or password. A new password needs the current one (401
/// `invalid_credentials`, 429), but no code of a second factor. It ends the actor's other sessions
/// and everything that was started with the old password.
pub async fn change(actor: &Actor, change: OwnChange) -> Result<MemberRow, ApiError> {
    actor.judged_own();
    let OwnChange { name, password } = change;
    let (member, store) = (actor.member(), &actor.app.store);
    let renamed = MemberRow { name: name.clone().unwrap_or_else(|| member.name.clone()), ..member.clone() };
    if let Some((password, current)) = password {
        passwords::check(&actor.origin, &member.email, current, std::slice::from_ref(member)).await?;
        let hash = actor.app.passwords.hash(password).await?;
        let event = actor.event("set_password", member.email.clone());
        let session = actor.needs_session()?;
        let done = store.change_own_password(member, &hash, name.as_deref(), session, Some(event));
        // Another call has set a password in the meantime, so `current` is no longer the current
        // one.
        return if done.await? { Ok(renamed) } else { Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)) };
    }
    if let Some(name) = name {
        let event = actor.event("rename_member", member.email.clone());
        if !store.set_member_name(actor.organization(), member.id, &name, Some(event)).await? {
            return Err(ApiError::from(&catalogue::NOT_FOUND));
        }
    }
    Ok(renamed)
}
