//! Which tokens there are: the actor's own, another member's, or service keys. Never a secret.

use packhouse_identity as identity;
use packhouse_identity::permissions::Permission;
use packhouse_store::{MemberRow, PUBLISHER_BACKING, TokenId, TokenRow};
use packhouse_wire::catalogue;

use super::{OwnedToken, rights};
use crate::error::ApiError;
use crate::operations::{Actor, Listed, PageRequest};

/// Rows read in one statement.
const READ_AT_ONCE: u32 = 201;

/// What service keys belong to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyKind {
    /// The organization: for its owners.
    Organization,
    /// A repository: for those who may publish and delete there.
    Repository,
    /// Trusted publishers, who stand behind ID tokens and what is given out for them: for the organization's owners.
    Publisher,
}

impl KeyKind {
    /// As the store keeps it.
    fn name(self) -> &'static str {
        match self {
            KeyKind::Organization => "org",
            KeyKind::Repository => "repo",
            KeyKind::Publisher => PUBLISHER_BACKING,
        }
    }
}

/// Which tokens are wanted.
#[derive(Clone, Debug)]
pub enum TokenFilter {
    /// The actor's own.
    Own,
    /// Those of the member with this e-mail address.
    Member(String),
    /// Service keys.
    Keys(KeyKind),
}

/// A page of tokens. 403 `insufficient_permissions` for another member's without manage-owner-account, then 404 `user_not_found`.
pub async fn list(
    actor: &Actor,
    filter: TokenFilter,
    page: PageRequest<TokenId>,
) -> Result<Listed<OwnedToken>, ApiError> {
    let email = &actor.member().email;
    match filter {
        TokenFilter::Own => of_member(actor, actor.member(), page).await,
        TokenFilter::Member(name) if identity::email(&name).as_ref() == Some(email) => {
            of_member(actor, actor.member(), page).await
        }
        TokenFilter::Member(name) => {
            // Before it is known whether there is such a member: who may not ask learns nothing of that.
            actor.needs(Permission::ManageOwnerAccount)?;
            of_member(actor, &other(actor, &name).await?, page).await
        }
        TokenFilter::Keys(kind) => keys(actor, kind, page).await,
    }
}

async fn of_member(
    actor: &Actor,
    member: &MemberRow,
    page: PageRequest<TokenId>,
) -> Result<Listed<OwnedToken>, ApiError> {
    actor.judged_own();
    let (store, organization) = (&actor.app.store, actor.organization());
    let rows = store.list_tokens(organization, Some(member.id), None, page.after, page.one_further()).await?;
    let owned = |row: TokenRow| OwnedToken { owner: row.owner.map(|_| member.email.clone()), row };
    Ok(page.cut(rows.into_iter().map(owned).collect()))
}

/// The member of that address in the actor's organization.
async fn other(actor: &Actor, name: &str) -> Result<MemberRow, ApiError> {
    let email = identity::email(name).unwrap_or_default();
    let members = actor.app.store.members_by_email(&email).await?;
    let member = members.into_iter().find(|row| row.organization == actor.organization());
    member.ok_or(ApiError::from(&catalogue::USER_NOT_FOUND))
}

/// Service keys that the actor may manage.
async fn keys(
    actor: &Actor,
    kind: KeyKind,
    page: PageRequest<TokenId>,
) -> Result<Listed<OwnedToken>, ApiError> {
    match kind {
        KeyKind::Organization | KeyKind::Publisher => actor.needs(Permission::ManageOwnerAccount)?,
        KeyKind::Repository => actor.judged_own(),
    }
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let (store, organization) = (&actor.app.store, actor.organization());
        let rows = store.list_tokens(organization, None, Some(kind.name()), after, READ_AT_ONCE).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < READ_AT_ONCE as usize;
        let managed = rows.into_iter().filter(|row| rights::may_manage_key(actor, row));
        found.extend(managed.map(|row| OwnedToken { row, owner: None }));
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}
