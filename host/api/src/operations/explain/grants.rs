//! Grants that give an action in a repository.

use packhouse_identity::access::Rights;
use packhouse_identity::grants::Grants;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_identity::permissions::{Permissions, RepositoryAction};
use packhouse_store::{MemberKind, MemberRow, TeamRow, TokenRow};

use super::target::AccessTarget;

/// Grant of an action in a repository.
#[derive(Clone, Debug)]
pub struct AccessGrant {
    pub kind: GrantKind,
    /// Id of the member, team, token or service account.
    pub id: String,
    /// Its name; the e-mail address of a member without a name.
    pub name: String,
    /// All actions that the grant gives in the repository.
    pub actions: Vec<RepositoryAction>,
    /// Patterns of the packages that may be published and deleted; `None` for all.
    pub packages: Option<Vec<String>>,
}

/// Kind of the object that has a grant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GrantKind {
    Member,
    Team,
    Token,
    ServiceAccount,
}

impl GrantKind {
    /// Returns the name in the API's JSON.
    pub fn name(self) -> &'static str {
        match self {
            GrantKind::Member => "member",
            GrantKind::Team => "team",
            GrantKind::Token => "token",
            GrantKind::ServiceAccount => "service_account",
        }
    }
}

/// Member, team, token or service account that has grants.
#[derive(Clone, Copy)]
struct Holder<'a> {
    kind: GrantKind,
    id: i64,
    name: &'a str,
}

impl Holder<'_> {
    fn grant(self, actions: Vec<RepositoryAction>, packages: Option<Vec<String>>) -> AccessGrant {
        AccessGrant {
            kind: self.kind,
            id: self.id.to_string(),
            name: self.name.to_owned(),
            actions,
            packages,
        }
    }
}

/// Grants of an action to a member: its own, and those of its teams.
pub(super) fn of_member(
    target: &AccessTarget,
    member: &MemberRow,
    teams: &[TeamRow],
    action: RepositoryAction,
) -> Vec<AccessGrant> {
    let kind = match member.kind {
        MemberKind::Person => GrantKind::Member,
        MemberKind::Service => GrantKind::ServiceAccount,
    };
    let name = if member.name.is_empty() { &member.email } else { &member.name };
    let own = Holder { kind, id: member.id.0, name };
    let mut grants = of_permissions(target, own, &Permissions::read(&member.permissions), action);
    for team in teams {
        let holder = Holder { kind: GrantKind::Team, id: team.id.0, name: &team.name };
        grants.extend(of_permissions(target, holder, &Permissions::read(&team.permissions), action));
    }
    grants
}

fn of_permissions(
    target: &AccessTarget,
    holder: Holder<'_>,
    permissions: &Permissions,
    action: RepositoryAction,
) -> Vec<AccessGrant> {
    let mut grants = Vec::new();
    if action == RepositoryAction::Manage && permissions.holds(ManageRepositories) {
        grants.push(holder.grant(vec![RepositoryAction::Manage], None));
    }
    for entry in &permissions.repositories {
        let alone = Permissions { organization: Vec::new(), repositories: vec![entry.clone()] };
        if has(alone.rights(target.row.id, &target.row.name), action) {
            grants.push(holder.grant(entry.actions.clone(), entry.packages.clone()));
        }
    }
    grants
}

/// Grant of an action to a token by its own scope. Grants of trusted publishers limit it to their
/// packages.
pub(super) fn of_token(
    target: &AccessTarget,
    token: &TokenRow,
    published: Option<&Grants>,
    action: RepositoryAction,
) -> Vec<AccessGrant> {
    let (read, write) = match published {
        Some(grants) => grants.scope(target.row.id),
        None => (token.scope.read, token.scope.write),
    };
    let rights = Rights { read, publish: write, delete: write, manage: false };
    if !token.repositories.contains(&target.row.id) || !has(rights, action) {
        return Vec::new();
    }
    let all = [RepositoryAction::Read, RepositoryAction::Publish, RepositoryAction::Delete];
    let actions = all.into_iter().filter(|action| has(rights, *action)).collect();
    let granted = published.map(|grants| grants.patterns(target.row.id, write));
    let holder = Holder { kind: GrantKind::Token, id: token.id.0, name: &token.name };
    vec![holder.grant(actions, granted.or_else(|| token.packages.clone()))]
}

fn has(rights: Rights, action: RepositoryAction) -> bool {
    match action {
        RepositoryAction::Read => rights.read,
        RepositoryAction::Publish => rights.publish,
        RepositoryAction::Delete => rights.delete,
        RepositoryAction::Manage => rights.manage,
    }
}
