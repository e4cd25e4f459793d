//! Explanation of a right in a repository: whether a member or a token has it, and which grants
//! give it. The same functions decide as for a request of a client.

mod grants;
mod target;

use packhouse_identity as identity;
use packhouse_identity::access::{AccessAction, ResolvedCredential, TokenFacts};
use packhouse_identity::grants::Grants;
use packhouse_identity::permissions::Permission::{ManageMembers, ManageRepositories};
use packhouse_identity::permissions::{PackagePatterns, Permissions, RepositoryAction};
use packhouse_store::{MemberKind, MemberRow, TokenId, TokenRow};
use packhouse_wire::catalogue;

use super::{Actor, members};
use crate::error::ApiError;
pub use grants::{AccessGrant, GrantKind};
use target::AccessTarget;

/// Question whether a member or a token may do something in a repository.
#[derive(Clone, Copy, Debug)]
pub struct AccessQuestion<'a> {
    pub subject: AccessSubject<'a>,
    /// Unchecked id of the repository.
    pub repository: &'a str,
    pub action: RepositoryAction,
    /// Name of a package; `None` asks for any package.
    pub package: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub enum AccessSubject<'a> {
    /// Unchecked id of a member or a service account, or the e-mail address of a member.
    Member(&'a str),
    /// Unchecked id of a token or a service key.
    Token(&'a str),
}

#[derive(Clone, Debug)]
pub struct Explanation {
    pub allowed: bool,
    /// Grants of the action in the repository, also those for other packages.
    pub grants: Vec<AccessGrant>,
    /// Error code of the refusal; `None` if it is allowed.
    pub denied_by: Option<&'static str>,
}

impl Explanation {
    fn new(grants: Vec<AccessGrant>, denied_by: Option<&'static str>) -> Explanation {
        Explanation { allowed: denied_by.is_none(), grants, denied_by }
    }
}

/// Explains a right. About other members and their tokens, and about service keys, it needs
/// manage-members. 404 `not_found` if the member, the token or the repository does not exist.
pub async fn explain(actor: &Actor, question: AccessQuestion<'_>) -> Result<Explanation, ApiError> {
    match question.subject {
        AccessSubject::Member(id) => {
            let member = member(actor, id).await?;
            let target = AccessTarget::find(actor, question.repository).await?;
            of_member(actor, &target, &member, &question).await
        }
        AccessSubject::Token(id) => {
            let token = token(actor, id).await?;
            let target = AccessTarget::find(actor, question.repository).await?;
            of_token(actor, &target, &token, &question).await
        }
    }
}

/// Finds the member of a question: the actor, or with manage-members any other.
async fn member(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let (own, email) = (actor.member(), identity::email(id));
    let is_own_email = own.kind == MemberKind::Person && email.as_ref() == Some(&own.email);
    if members::is_own(actor, id) || is_own_email {
        actor.judged_own();
        return Ok(own.clone());
    }
    actor.needs(ManageMembers)?;
    let Some(email) = email else { return members::find_any(actor, id).await };
    let found = actor.app.store.members_by_email(&email).await?;
    let found = found.into_iter().find(|row| row.organization == actor.organization());
    found.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Finds the token of a question: the actor's own, or with manage-members any other.
async fn token(actor: &Actor, id: &str) -> Result<TokenRow, ApiError> {
    let found = match id.parse::<TokenId>() {
        Ok(id) => actor.app.store.find_token(actor.organization(), id).await?,
        Err(_) => None,
    };
    if found.as_ref().is_some_and(|row| row.owner == Some(actor.member().id)) {
        actor.judged_own();
    } else {
        actor.needs(ManageMembers)?;
    }
    found.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

async fn of_member(
    actor: &Actor,
    target: &AccessTarget,
    member: &MemberRow,
    question: &AccessQuestion<'_>,
) -> Result<Explanation, ApiError> {
    let teams = actor.app.store.teams_of_member(member.id).await?;
    let grants = grants::of_member(target, member, &teams, question.action);
    let permissions = Permissions::of_member(member);
    let denied_by = if member.active {
        denied_to_member(target, &permissions, question, actor.now)
    } else {
        Some(catalogue::MEMBER_SUSPENDED.code)
    };
    Ok(Explanation::new(grants, denied_by))
}

fn denied_to_member(
    target: &AccessTarget,
    permissions: &Permissions,
    question: &AccessQuestion<'_>,
    now: i64,
) -> Option<&'static str> {
    let (id, name) = (target.row.id, target.row.name.as_str());
    let rights = permissions.rights(id, name);
    let Some(action) = access_action(question.action) else {
        let manages = rights.manage || permissions.holds(ManageRepositories);
        return (!manages).then_some(catalogue::INSUFFICIENT_PERMISSIONS.code);
    };
    let refused = target.refusal(&ResolvedCredential::Member(rights), action, now);
    let held = permissions.patterns(id, name, question.action);
    let is_other = action.writes() && target.excludes(&held, question.package);
    refused.or(is_other.then_some(catalogue::PACKAGE_OUT_OF_SCOPE.code))
}

async fn of_token(
    actor: &Actor,
    target: &AccessTarget,
    token: &TokenRow,
    question: &AccessQuestion<'_>,
) -> Result<Explanation, ApiError> {
    let store = &actor.app.store;
    let owner = match token.owner {
        Some(owner) => store.find_member(token.organization, owner).await?,
        None => None,
    };
    let teams = match &owner {
        Some(owner) => store.teams_of_member(owner.id).await?,
        None => Vec::new(),
    };
    let published = token.grants.as_deref().map(Grants::read).transpose()?;
    let mut all = grants::of_token(target, token, published.as_ref(), question.action);
    if let Some(owner) = &owner {
        all.extend(grants::of_member(target, owner, &teams, question.action));
    }
    let denied_by = if owner.as_ref().is_some_and(|owner| !owner.active) {
        Some(catalogue::MEMBER_SUSPENDED.code)
    } else {
        let permissions = token.owner.map(|_| owner.as_ref().map(Permissions::of_member).unwrap_or_default());
        let facts = DecidedToken { token, permissions, published };
        facts.denied(target, question, actor.now)
    };
    Ok(Explanation::new(all, denied_by))
}

/// Token with everything that decides about its rights.
struct DecidedToken<'a> {
    token: &'a TokenRow,
    /// Permissions of its owner; none if the owner's account no longer exists. `None` for a token
    /// without an owner.
    permissions: Option<Permissions>,
    /// Grants of the trusted publishers that the token was issued for; `None` for other tokens.
    published: Option<Grants>,
}

impl DecidedToken<'_> {
    fn denied(&self, target: &AccessTarget, question: &AccessQuestion<'_>, now: i64) -> Option<&'static str> {
        let Some(action) = access_action(question.action) else {
            return Some(catalogue::INSUFFICIENT_PERMISSIONS.code);
        };
        let presented = ResolvedCredential::Token(self.facts(target), None);
        let refused = target.refusal(&presented, action, now);
        if refused.is_some() || !action.writes() {
            return refused;
        }
        let mut limits = self.limits(target).into_iter();
        limits.find(|(held, _)| target.excludes(held, question.package)).map(|(_, code)| code)
    }

    fn facts(&self, target: &AccessTarget) -> TokenFacts {
        let token = self.token;
        let (read, write) = match &self.published {
            Some(grants) => grants.scope(target.row.id),
            None => (token.scope.read, token.scope.write),
        };
        let owner = self.permissions.as_ref();
        TokenFacts {
            read,
            write,
            format: token.format.as_str().into(),
            revoked_at: token.revoked_at,
            expires_at: token.expires_at,
            ends_at: token.ends_at,
            listed: token.repositories.contains(&target.row.id),
            owner: owner.map(|permissions| permissions.rights(target.row.id, &target.row.name)),
            username: None,
        }
    }

    /// Packages to which the token's writes are limited, each list with the code of its refusal.
    fn limits(&self, target: &AccessTarget) -> Vec<(PackagePatterns, &'static str)> {
        let (id, name) = (target.row.id, target.row.name.as_str());
        let mut limits = Vec::new();
        if let Some(grants) = &self.published {
            let granted = PackagePatterns::Only(grants.patterns(id, true));
            limits.push((granted, catalogue::PACKAGE_NOT_REACHED.code));
        }
        if let Some(own) = &self.token.packages {
            limits.push((PackagePatterns::Only(own.clone()), catalogue::PACKAGE_OUT_OF_SCOPE.code));
        }
        if let Some(permissions) = &self.permissions {
            for action in [RepositoryAction::Publish, RepositoryAction::Delete] {
                let code = catalogue::REVOKED_AUTHORITY_CLAMP.code;
                limits.push((permissions.patterns(id, name, action), code));
            }
        }
        limits
    }
}

/// Action of a client; `None` for managing the repository.
fn access_action(action: RepositoryAction) -> Option<AccessAction> {
    match action {
        RepositoryAction::Read => Some(AccessAction::Read { for_publish: false }),
        RepositoryAction::Publish => Some(AccessAction::Publish),
        RepositoryAction::Delete => Some(AccessAction::Delete),
        RepositoryAction::Manage => None,
    }
}
