//! `DELETE /v1/tokens/{id}`, and who may do it.

use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{RepositoryId, TokenId, TokenRow};

use super::view::LEGACY;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_wire::catalogue;

/// Revokes a token: it is refused from the next request on. Revoking it again changes nothing.
#[utoipa::path(delete, operation_id = "revoke_token", path = "/v1/tokens/{id}",
    params(("id" = String, Path)), responses((status = 204),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn revoke(call: Call) -> Answer {
    call.only(&[])?;
    let row = find(&call).await?;
    may_manage(&call, &row)?;
    let event = call.event("revoke_token", row.name.clone())?;
    call.app.store.revoke_token(row.organization, row.id, call.now, event).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The token of the path's `{id}`.
pub(super) async fn find(call: &Call) -> Result<TokenRow, ApiError> {
    let Ok(id) = call.path("id").parse::<TokenId>() else {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    };
    let row = call.app.store.find_token(call.organization()?, id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Judges whether the caller may rotate or revoke the token: its own, or with the right that its kind asks for.
pub(super) fn may_manage(call: &Call, row: &TokenRow) -> Result<(), ApiError> {
    let own = row.owner == Some(call.caller()?.member.id);
    if !own && !may_manage_key(call, row)? {
        call.needs(Permission::ManageOwnerAccount)?;
    }
    call.judge(true, &catalogue::INSUFFICIENT_PERMISSIONS)
}

/// Whether the caller may make, list, rotate and revoke keys of this repository: with publish and delete there, or as who manages the
/// account.
pub(super) fn may_manage_keys_of(permissions: &Permissions, repository: RepositoryId) -> bool {
    permissions.rights(repository).write() || permissions.holds(Permission::ManageOwnerAccount)
}

/// Whether it is a service key that the caller may manage.
pub(super) fn may_manage_key(call: &Call, row: &TokenRow) -> Result<bool, ApiError> {
    let permissions = &call.caller()?.permissions;
    Ok(match (row.backing.as_deref(), row.backing_repository) {
        (Some("repo"), Some(repository)) => may_manage_keys_of(permissions, repository),
        (Some("org" | LEGACY), _) => permissions.holds(Permission::ManageOwnerAccount),
        _ => false,
    })
}
