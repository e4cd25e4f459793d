//! Rules for managing members (Authentication rule 9 of the specification).
//!
//! A member cannot grant, take away or manage a permission that the member does not hold. So a
//! member cannot manage another one who holds more, and a read-only member manages only read-only
//! members. The rules compare effective permissions: a member's own together with those of the
//! member's teams.

use std::collections::HashMap;

use packhouse_identity::access::Rights;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{
    InvitationRow, MemberId, MemberKind, MemberRow, OrganizationId, PasswordReset, RepositoryId,
    RepositoryRow,
};
use packhouse_wire::catalogue;

use crate::error::ApiError;
use crate::operations::{Actor, Origin};

impl Actor {
    /// Returns the actor's rights in a repository.
    pub fn rights_in(&self, repository: &RepositoryRow) -> Rights {
        self.permissions().rights(repository.id, &repository.name)
    }

    /// Returns whether the actor may manage a repository: with manage-repositories, or with the
    /// action `manage` there.
    pub fn manages(&self, repository: &RepositoryRow) -> bool {
        self.permissions().holds(Permission::ManageRepositories) || self.rights_in(repository).manage
    }

    /// Returns whether the actor holds all of these permissions, and so may grant them.
    pub async fn covers(&self, permissions: &Permissions) -> Result<bool, ApiError> {
        // An owner of an organization other than the first one does not manage the server.
        let server = Permission::ManageServer;
        if permissions.holds(server) && !self.permissions().holds(server) {
            return Ok(false);
        }
        // A person who owns the first organization manages the server, but a service account does
        // so only if its permissions name that right. Without it, it cannot make an owner there.
        let would_own = permissions.holds(Permission::ManageOwnerAccount);
        if self.member().kind == MemberKind::Service
            && would_own
            && !self.permissions().holds(server)
            && self.app.first_organization().await? == Some(self.organization())
        {
            return Ok(false);
        }
        let names = RepositoryNames::read(self, self.organization(), self.permissions(), permissions).await?;
        Ok(self.permissions().covers(permissions, |id| names.of(id)))
    }
}

/// Names of repositories by their ids. They decide whether a pattern of repository names covers a
/// permission that lists a repository by its id.
#[derive(Debug, Default)]
pub(super) struct RepositoryNames(HashMap<String, String>);

impl RepositoryNames {
    /// Reads the names that the comparison of `held` with `other` needs. A repository never changes
    /// its name, so they stay valid.
    pub(super) async fn read(
        origin: &Origin,
        organization: OrganizationId,
        held: &Permissions,
        other: &Permissions,
    ) -> Result<RepositoryNames, ApiError> {
        if !held.has_name_patterns() {
            return Ok(RepositoryNames::default());
        }
        let ids: Vec<RepositoryId> = other.named().filter_map(|id| id.parse().ok()).collect();
        let rows = origin.app.store.find_repositories(organization, &ids).await?;
        Ok(RepositoryNames(rows.into_iter().map(|row| (row.id.to_string(), row.name)).collect()))
    }

    fn of(&self, id: &str) -> Option<String> {
        self.0.get(id).cloned()
    }
}

/// Finds a member to manage. 403 `role_mismatch` without manage-members, for any id; 404
/// `not_found` if the member does not exist in the actor's organization.
pub(super) async fn find_to_manage(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    actor.judge(actor.permissions().holds(Permission::ManageMembers), &catalogue::ROLE_MISMATCH)?;
    find(actor, id).await
}

/// Finds a person. 404 `not_found` if the member does not exist in the actor's organization, and
/// for a service account.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let row = find_any(actor, id).await?;
    if row.kind == MemberKind::Person { Ok(row) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

/// Finds a person or a service account. 404 `not_found` if neither exists in the actor's
/// organization.
pub(in crate::operations) async fn find_any(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let id = id.parse::<MemberId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_member(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Returns whether this is the actor's own id.
pub(in crate::operations) fn is_own(actor: &Actor, id: &str) -> bool {
    id == actor.member().id.to_string()
}

/// Returns whether a holder of `held` may create a member with `other`, or change a member to it.
fn manages(held: &Permissions, other: &Permissions, names: &RepositoryNames) -> bool {
    held.holds(Permission::ManageMembers) && held.covers(other, |id| names.of(id))
}

/// Checks that the actor may create a member with these permissions, or change a member to them.
/// 403 `role_mismatch` without manage-members, or if they exceed the actor's own.
pub(in crate::operations) async fn may_grant(
    actor: &Actor,
    permissions: &Permissions,
) -> Result<(), ApiError> {
    let held = actor.permissions().holds(Permission::ManageMembers) && actor.covers(permissions).await?;
    actor.judge(held, &catalogue::ROLE_MISMATCH)
}

/// Checks that the actor may change or delete this member, who must not hold more than the actor.
pub(in crate::operations) async fn may_manage(actor: &Actor, row: &MemberRow) -> Result<(), ApiError> {
    may_grant(actor, &Permissions::of_member(row)).await
}

/// Reads the names that [`may_reset`] needs.
pub(super) async fn names_for_reset(
    origin: &Origin,
    reset: &PasswordReset,
) -> Result<RepositoryNames, ApiError> {
    let PasswordReset { member, made_by } = reset;
    let (held, other) = (Permissions::of_member(made_by), Permissions::of_member(member));
    RepositoryNames::read(origin, member.organization, &held, &other).await
}

/// Returns whether the creator of the reset may still reset the member's password, with their
/// present permissions. A read-only member can only reset their own, and a suspended one none.
pub(super) fn may_reset(reset: &PasswordReset, names: &RepositoryNames) -> bool {
    let PasswordReset { member, made_by } = reset;
    let held = Permissions::of_member(made_by);
    let others = member.id != made_by.id;
    made_by.active && manages(&held, &Permissions::of_member(member), names) && !(others && held.read_only())
}

/// Reads the names that [`may_invite`] needs.
pub(super) async fn names_for_invitation(
    origin: &Origin,
    inviter: &MemberRow,
    invitation: &InvitationRow,
) -> Result<RepositoryNames, ApiError> {
    let (held, other) = (Permissions::of_member(inviter), Permissions::read(&invitation.permissions));
    RepositoryNames::read(origin, invitation.organization, &held, &other).await
}

/// Returns whether the inviting member may still grant the permissions of the invitation. A
/// suspended member may not.
pub(super) fn may_invite(inviter: &MemberRow, invitation: &InvitationRow, names: &RepositoryNames) -> bool {
    let (held, other) = (Permissions::of_member(inviter), Permissions::read(&invitation.permissions));
    inviter.active && manages(&held, &other, names)
}

/// Checks that every server of this database knows teams, patterns in permissions, the action
/// `manage`, and suspension: a server of the previous version would ignore them. Otherwise 409
/// `servers_too_old`. `feature` names the requested feature in the refusal.
pub async fn servers_know(actor: &Actor, feature: &str) -> Result<(), ApiError> {
    if actor.app.store.servers_know_access().await? {
        Ok(())
    } else {
        Err(ApiError::with(&catalogue::SERVERS_TOO_OLD, feature))
    }
}

/// Checks that every server of this database understands these permissions; otherwise 409
/// `servers_too_old`.
pub async fn servers_understand(actor: &Actor, permissions: &Permissions) -> Result<(), ApiError> {
    if permissions.needs_new_servers() {
        servers_know(actor, "patterns and the action `manage` in permissions").await?;
    }
    Ok(())
}

/// Checks that the repositories in the permissions exist; otherwise 400 `invalid_request`.
pub async fn repositories_exist(actor: &Actor, permissions: &Permissions) -> Result<(), ApiError> {
    let mut ids = Vec::new();
    for name in permissions.named() {
        let id: RepositoryId = name.parse().map_err(|_| no_repository(name))?;
        ids.push(id);
    }
    let found = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    match ids.iter().find(|id| !found.iter().any(|row| row.id == **id)) {
        Some(id) => Err(no_repository(&id.to_string())),
        None => Ok(()),
    }
}

fn no_repository(name: &str) -> ApiError {
    ApiError::invalid(&format!("`permissions` names the repository `{name}`, which does not exist."))
}
