//! Access keys of subscribers and of groups of subscribers: credentials that read what their owner was given, and nothing else.
//! Each call exists for both kinds of owner; whatever changes a key needs a fresh confirmation of `manage_access_keys`.

mod change;
mod create;
mod list;
mod revoke;
mod rotate;
mod view;

pub(crate) use change::{
    __path_change_for_group, __path_change_for_subscriber, change_for_group, change_for_subscriber,
};
pub(crate) use create::{
    __path_create_for_group, __path_create_for_subscriber, create_for_group, create_for_subscriber,
};
pub(crate) use list::{
    __path_list_for_group, __path_list_for_subscriber, list_for_group, list_for_subscriber,
};
pub(crate) use revoke::{
    __path_revoke_for_group, __path_revoke_for_subscriber, revoke_for_group, revoke_for_subscriber,
};
pub(crate) use rotate::{
    __path_rotate_for_group, __path_rotate_for_subscriber, rotate_for_group, rotate_for_subscriber,
};

use packhouse_store::{AccessKeyId, AccessKeyRow, AuditEvent, KeyOwnerId, KeyOwnerRow};

use super::call::Call;
use super::error::ApiError;
use super::fields::Field;
use super::sessions::Action;
use packhouse_wire::catalogue;

/// Spends the confirmation: 403 `step_up_required` where there is none, or none that is good.
async fn confirm(call: &Call, field: &Field) -> Result<(), ApiError> {
    let action = Action::ManageAccessKeys.name();
    call.confirm(field.as_ref(), action, &catalogue::STEP_UP_FORBIDDEN).await
}

/// The key of the path's `{key}` of this owner: 404 `access_key_not_found` for another's too.
async fn find(call: &Call, owner: KeyOwnerId) -> Result<AccessKeyRow, ApiError> {
    let id = call.path("key").parse::<AccessKeyId>().map_err(|_| &catalogue::ACCESS_KEY_NOT_FOUND)?;
    let row = call.app.store.find_access_key(owner, id).await?;
    row.ok_or(ApiError::from(&catalogue::ACCESS_KEY_NOT_FOUND))
}

/// Judges whether the caller may read all that a key of this owner reaches: whoever is shown its secret reads it.
async fn may_hold(call: &Call, owner: KeyOwnerId) -> Result<(), ApiError> {
    let reach = call.app.store.key_reach(owner).await?;
    let permissions = &call.caller()?.permissions;
    let readable = reach.into_iter().all(|repository| permissions.rights(repository).read);
    call.judge(readable, &catalogue::REPO_ACCESS_DENIED)
}

/// An event about a key, by its owner's name and with the key's id.
fn event(
    call: &Call,
    action: &str,
    owner: &KeyOwnerRow,
    key: AccessKeyId,
) -> Result<Option<AuditEvent>, ApiError> {
    let detail = serde_json::json!({"access_key": key.to_string()}).to_string();
    let event = call.event(action, owner.name.as_str())?;
    Ok(event.map(|event| AuditEvent { detail, ..event }))
}
