//! Members as users of SCIM. A created member has no password and no permissions: it signs in
//! through the organization's provider, and its groups give it permissions.

use packhouse_identity as identity;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{AuditEvent, EmailChange, MemberId, MemberKind, MemberRow, NewMember};
use packhouse_wire::catalogue;

use super::{ListPart, ListWindow};
use crate::error::ApiError;
use crate::fields;
use crate::operations::{Actor, members};

/// Members that are read at a time.
const PAGE: u32 = 500;

/// Property by which a directory looks a user up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UserFilter {
    Id(String),
    /// E-mail address, not yet normalized.
    Email(String),
    ExternalId(String),
}

/// Changes of a user; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserChange {
    /// E-mail address, which is normalized.
    pub email: Option<String>,
    pub name: NameChange,
    /// Identifier in the directory; an empty text removes it.
    pub external_id: Option<String>,
    /// False suspends the member, and true ends that.
    pub active: Option<bool>,
}

/// Change of a displayed name, which the server stores as one text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameChange {
    pub whole: Option<String>,
    /// Given name, which replaces all words but the last.
    pub given: Option<String>,
    /// Family name, which replaces the last word.
    pub family: Option<String>,
}

impl NameChange {
    /// Returns the name after the change.
    pub fn apply(&self, present: &str) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        if self.given.is_none() && self.family.is_none() {
            return present.to_owned();
        }
        let (given, family) = present.rsplit_once(' ').unwrap_or((present, ""));
        let given = self.given.as_deref().unwrap_or(given);
        let family = self.family.as_deref().unwrap_or(family);
        format!("{given} {family}").trim().to_owned()
    }
}

/// Returns a part of the users by creation time, or those that a filter finds.
pub async fn list(
    actor: &Actor,
    filter: Option<UserFilter>,
    window: ListWindow,
) -> Result<ListPart<MemberRow>, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    match filter {
        Some(filter) => Ok(window.cut(find_by(actor, filter).await?.into_iter().collect())),
        None => walk(actor, window).await,
    }
}

/// Finds the person that a filter names, if there is one.
async fn find_by(actor: &Actor, filter: UserFilter) -> Result<Option<MemberRow>, ApiError> {
    let (store, organization) = (&actor.app.store, actor.organization());
    let found = match filter {
        UserFilter::Id(id) => match id.parse::<MemberId>() {
            Ok(id) => store.find_member(organization, id).await?,
            Err(_) => None,
        },
        UserFilter::Email(text) => match identity::email(&text) {
            Some(email) => by_email(actor, &email).await?,
            None => None,
        },
        UserFilter::ExternalId(id) => store.find_member_by_external_id(organization, &id).await?,
    };
    Ok(found.filter(|row| row.kind == MemberKind::Person))
}

/// Reads all members, so that the length of the list is known.
async fn walk(actor: &Actor, window: ListWindow) -> Result<ListPart<MemberRow>, ApiError> {
    let (mut total, mut rows, mut after) = (0, Vec::new(), None);
    loop {
        let page = actor.app.store.list_members(actor.organization(), after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        after = page.last().map(|row| row.id);
        for row in page {
            if window.contains(total) {
                rows.push(row);
            }
            total += 1;
        }
        if is_last {
            return Ok(ListPart { total, rows });
        }
    }
}

/// Returns a user. 404 `not_found` if there is no person with this id.
pub async fn show(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    person(actor, id).await
}

/// Finds a person by its id; otherwise 404 `not_found`.
pub(super) async fn person(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let found = find_by(actor, UserFilter::Id(id.to_owned())).await?;
    found.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Creates a member without password and permissions. 409 `user_already_exists` if the e-mail
/// address or the identifier of the directory is in use.
pub async fn create(actor: &Actor, change: UserChange) -> Result<MemberRow, ApiError> {
    let email = change.email.clone().ok_or_else(|| ApiError::invalid("`userName` is required."))?;
    let name = named(&change.name, "")?;
    actor.needs(Permission::ManageMembers)?;
    if change.active == Some(false) {
        members::servers_know(actor, "suspension").await?;
    }
    external_id_is_free(actor, &change, None).await?;
    let permissions = serde_json::to_string(&Permissions::default()).map_err(anyhow::Error::from)?;
    let event = actor.event("create_member", email.clone());
    // An empty hash matches no password.
    let new = NewMember { email, name, password_hash: String::new(), permissions };
    let made = actor.app.store.create_member(actor.organization(), new, Some(event)).await?;
    let row = made.ok_or(ApiError::from(&catalogue::USER_ALREADY_EXISTS))?;
    let row = set_external_id(actor, row, &change).await?;
    set_active(actor, row, &change).await
}

/// Changes a user. A change that leaves everything as it is needs no further right, so that a
/// directory may state members who hold more than its token. 403 `role_mismatch` for other changes
/// of such a member; 409 `user_already_exists` or `last_owner`.
pub async fn change(actor: &Actor, id: &str, change: UserChange) -> Result<MemberRow, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    let row = person(actor, id).await?;
    let name = named(&change.name, &row.name)?;
    let email = change.email.clone().unwrap_or_else(|| row.email.clone());
    let present_id = row.external_id.as_deref().unwrap_or_default();
    let is_changed = name != row.name
        || email != row.email
        || change.active.is_some_and(|active| active != row.active)
        || change.external_id.as_deref().is_some_and(|id| id != present_id);
    if !is_changed {
        return Ok(row);
    }
    members::may_grant(actor, &Permissions::of_member(&row)).await?;
    external_id_is_free(actor, &change, Some(row.id)).await?;
    if email != row.email && by_email(actor, &email).await?.is_some() {
        return Err(ApiError::from(&catalogue::USER_ALREADY_EXISTS));
    }
    // Only stated changes are written: another call may have changed the rest in the meantime.
    let (new_email, new_name) = ((email != row.email).then_some(email), (name != row.name).then_some(name));
    // The changes that may be refused come first.
    let mut row = set_active(actor, row, &change).await?;
    if let Some(email) = new_email {
        row = set_email(actor, row, email).await?;
    }
    row = set_external_id(actor, row, &change).await?;
    match new_name {
        Some(name) => set_name(actor, row, name).await,
        None => Ok(row),
    }
}

/// Deletes a member, which revokes its tokens. 403 `role_mismatch`; 409 `last_owner`.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    actor.needs(Permission::ManageMembers)?;
    members::remove(actor, id).await
}

/// Applies a change to a name. 400 `invalid_name` if the result is not a name.
fn named(change: &NameChange, present: &str) -> Result<String, ApiError> {
    let name = change.apply(present);
    // A name that is stored already may be from before this check.
    if name.is_empty() || name == present { Ok(name) } else { fields::name(&Some(name.into())) }
}

/// Finds the member of the organization that has this address.
async fn by_email(actor: &Actor, email: &str) -> Result<Option<MemberRow>, ApiError> {
    let found = actor.app.store.members_by_email(email).await?;
    Ok(found.into_iter().find(|row| row.organization == actor.organization()))
}

/// Checks that no other member has the identifier of the directory: a directory finds its users by
/// it.
async fn external_id_is_free(
    actor: &Actor,
    change: &UserChange,
    own: Option<MemberId>,
) -> Result<(), ApiError> {
    let Some(id) = change.external_id.as_deref().filter(|id| !id.is_empty()) else { return Ok(()) };
    match actor.app.store.find_member_by_external_id(actor.organization(), id).await? {
        Some(other) if Some(other.id) != own => {
            let code = &catalogue::USER_ALREADY_EXISTS;
            let message = "Another member has this `externalId`.".to_owned();
            Err(ApiError::Refused { code, message, retry_after: None })
        }
        _ => Ok(()),
    }
}

async fn set_external_id(actor: &Actor, row: MemberRow, change: &UserChange) -> Result<MemberRow, ApiError> {
    let Some(id) = &change.external_id else { return Ok(row) };
    let external_id = Some(id.clone()).filter(|id| !id.is_empty());
    if external_id == row.external_id {
        return Ok(row);
    }
    let event = actor.event("set_member_external_id", row.email.clone());
    let store = &actor.app.store;
    let set = store.set_member_external_id(row.organization, row.id, external_id.as_deref(), Some(event));
    if set.await? { Ok(MemberRow { external_id, ..row }) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

async fn set_active(actor: &Actor, row: MemberRow, change: &UserChange) -> Result<MemberRow, ApiError> {
    match change.active {
        Some(active) if active != row.active => members::set_active(actor, &row.id.to_string(), active).await,
        _ => Ok(row),
    }
}

async fn set_email(actor: &Actor, mut row: MemberRow, email: String) -> Result<MemberRow, ApiError> {
    while row.email != email {
        let detail = serde_json::json!({"email": email}).to_string();
        let event = AuditEvent { detail, ..actor.event("set_member_email", row.email.clone()) };
        match actor.app.store.set_member_email(&row, &email, Some(event)).await? {
            EmailChange::Done => row.email.clone_from(&email),
            EmailChange::Taken => return Err(ApiError::from(&catalogue::USER_ALREADY_EXISTS)),
            // Another call changed the member in the meantime; check again with the new state.
            EmailChange::Changed => {
                row = person(actor, &row.id.to_string()).await?;
                members::may_grant(actor, &Permissions::of_member(&row)).await?;
            }
        }
    }
    Ok(row)
}

async fn set_name(actor: &Actor, row: MemberRow, name: String) -> Result<MemberRow, ApiError> {
    if name == row.name {
        return Ok(row);
    }
    let event = actor.event("rename_member", row.email.clone());
    if actor.app.store.set_member_name(row.organization, row.id, &name, Some(event)).await? {
        Ok(MemberRow { name, ..row })
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}
