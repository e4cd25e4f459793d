//! Lists of tokens: the actor's own, another member's, or service keys. They never contain a
//! secret.

use std::collections::HashMap;

use packhouse_identity as identity;
use packhouse_identity::permissions::Permission;
use packhouse_store::{
    MemberId, MemberRow, PUBLISHER_BACKING, RepositoryId, RepositoryRow, TokenId, TokenRow,
};
use packhouse_wire::catalogue;

use super::{OwnedToken, rights};
use crate::error::ApiError;
use crate::operations::{Actor, PageRequest, RowPage};

/// Rows that are read in one statement.
const READ_AT_ONCE: u32 = 201;

/// Kind of owner of a service key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyKind {
    /// Organization; its owners manage them.
    Organization,
    /// Repository; members who may publish and delete there manage them.
    Repository,
    /// Trusted publishers, whose tokens were issued for ID tokens; owners of the organization
    /// manage them.
    Publisher,
}

impl KeyKind {
    /// Name of the kind in the store.
    fn name(self) -> &'static str {
        match self {
            KeyKind::Organization => "org",
            KeyKind::Repository => "repo",
            KeyKind::Publisher => PUBLISHER_BACKING,
        }
    }
}

#[derive(Clone, Debug)]
pub enum TokenFilter {
    Own,
    /// Tokens of the member with this e-mail address.
    Member(String),
    Keys(KeyKind),
}

/// Order of a list, by the time of creation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ListOrder {
    OldestFirst,
    NewestFirst,
}

/// Returns a page of tokens, the oldest first. Another member's tokens need manage-owner-account:
/// 403 `insufficient_permissions`, then 404 `user_not_found`.
pub async fn list(
    actor: &Actor,
    filter: TokenFilter,
    page: PageRequest<TokenId>,
) -> Result<RowPage<OwnedToken>, ApiError> {
    ordered(actor, filter, page, ListOrder::OldestFirst).await
}

/// Like [`list`], but the newest token comes first.
pub async fn list_newest(
    actor: &Actor,
    filter: TokenFilter,
    page: PageRequest<TokenId>,
) -> Result<RowPage<OwnedToken>, ApiError> {
    ordered(actor, filter, page, ListOrder::NewestFirst).await
}

async fn ordered(
    actor: &Actor,
    filter: TokenFilter,
    page: PageRequest<TokenId>,
    order: ListOrder,
) -> Result<RowPage<OwnedToken>, ApiError> {
    let email = &actor.member().email;
    match filter {
        TokenFilter::Own => of_member(actor, actor.member(), page, order).await,
        TokenFilter::Member(name) if identity::email(&name).as_ref() == Some(email) => {
            of_member(actor, actor.member(), page, order).await
        }
        TokenFilter::Member(name) => {
            // Checked before the member is looked up, so that the refusal does not reveal whether
            // the member exists.
            actor.needs(Permission::ManageOwnerAccount)?;
            of_member(actor, &other(actor, &name).await?, page, order).await
        }
        TokenFilter::Keys(kind) => keys(actor, kind, page, order).await,
    }
}

/// Reads tokens of a member, or service keys of a kind, that follow the last token of the previous
/// page in this order.
async fn read(
    actor: &Actor,
    owner: Option<MemberId>,
    kind: Option<KeyKind>,
    page: PageRequest<TokenId>,
    order: ListOrder,
) -> Result<Vec<TokenRow>, ApiError> {
    let (store, organization) = (&actor.app.store, actor.organization());
    let (backing, PageRequest { limit, after }) = (kind.map(KeyKind::name), page);
    let rows = match order {
        ListOrder::OldestFirst => store.list_tokens(organization, owner, backing, after, limit).await?,
        ListOrder::NewestFirst => {
            store.list_newest_tokens(organization, owner, backing, after, limit).await?
        }
    };
    Ok(rows)
}

async fn of_member(
    actor: &Actor,
    member: &MemberRow,
    page: PageRequest<TokenId>,
    order: ListOrder,
) -> Result<RowPage<OwnedToken>, ApiError> {
    actor.judged_own();
    let further = PageRequest { limit: page.one_further(), ..page };
    let rows = read(actor, Some(member.id), None, further, order).await?;
    let owned = |row: TokenRow| OwnedToken { owner: row.owner.map(|_| member.email.clone()), row };
    Ok(page.cut(rows.into_iter().map(owned).collect()))
}

/// Finds the member with this e-mail address in the actor's organization.
async fn other(actor: &Actor, name: &str) -> Result<MemberRow, ApiError> {
    let email = identity::email(name).unwrap_or_default();
    let members = actor.app.store.members_by_email(&email).await?;
    let member = members.into_iter().find(|row| row.organization == actor.organization());
    member.ok_or(ApiError::from(&catalogue::USER_NOT_FOUND))
}

/// Returns the service keys that the actor may manage.
async fn keys(
    actor: &Actor,
    kind: KeyKind,
    page: PageRequest<TokenId>,
    order: ListOrder,
) -> Result<RowPage<OwnedToken>, ApiError> {
    match kind {
        KeyKind::Organization | KeyKind::Publisher => actor.needs(Permission::ManageOwnerAccount)?,
        KeyKind::Repository => actor.judged_own(),
    }
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let rows = read(actor, None, Some(kind), PageRequest { limit: READ_AT_ONCE, after }, order).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < READ_AT_ONCE as usize;
        let repositories = repositories_of(actor, &rows).await?;
        let of = |row: &TokenRow| row.backing_repository.and_then(|id| repositories.get(&id));
        let managed = rows.into_iter().filter(|row| rights::may_manage_key(actor, row, of(row)));
        found.extend(managed.map(|row| OwnedToken { row, owner: None }));
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}

/// Returns the repositories to which these service keys belong.
async fn repositories_of(
    actor: &Actor,
    keys: &[TokenRow],
) -> Result<HashMap<RepositoryId, RepositoryRow>, ApiError> {
    let mut ids: Vec<RepositoryId> = keys.iter().filter_map(|row| row.backing_repository).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}
