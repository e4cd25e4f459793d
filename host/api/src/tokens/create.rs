//! `POST /v1/tokens`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::RepositoryId;
use serde::Deserialize;
use utoipa::ToSchema;

use super::judge::{self, Backing, Judged};
use super::revoke::may_manage_keys_of;
use super::view::{NewTokenView, TokenView};
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{Field, given};
use crate::sessions::Action;
use packhouse_identity::permissions::Permission;
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// A token to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    pub(super) name: Field,
    /// One or both of `read` and `write`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    pub(super) scope: Field,
    /// `generic` or `npm`, or a format whose plugin says that there are tokens of it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    pub(super) format: Field,
    /// Ids of repositories, at least one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    pub(super) repositories: Field,
    /// ms since 1970, or null for never; must be stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    pub(super) expires_at: Field,
    /// For a service key: `{kind: "org"}`, or `{kind: "repo", id}`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    pub(super) backing: Field,
    /// From POST /v1/confirmations for `create_token`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}

/// Makes a token, or with `backing` a service key: one of a repository needs publish and delete there, as listing, rotating and revoking
/// it does.
#[utoipa::path(post, operation_id = "create_token", path = "/v1/tokens", request_body = Create, responses(
    (status = 201, body = NewTokenView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody)))]
pub async fn create(mut call: Call) -> Answer {
    let wanted: Create = call.body()?;
    call.only(&[])?;
    let judged = judge::body(&wanted, &call.app.runtime.own_tokens(), call.now)?;
    let action = Action::CreateToken.name();
    call.confirm(wanted.confirmation_token.as_ref(), action, &catalogue::MISSING_CONFIRMATION_TOKEN).await?;
    let repositories = judge_rights(&call, &judged).await?;
    let Minted { secret, sha256 } = identity::mint();
    let member = &call.caller()?.member;
    let token = judged.token(sha256, member, repositories);
    let event = call.event(action, token.name.clone())?;
    let row = call.app.store.create_token(call.organization()?, token, event).await?;
    let view = TokenView::new(&row, Some(&member.email), call.now);
    Ok((StatusCode::CREATED, Json(NewTokenView::new(view, &secret, None))).into_response())
}

/// The repositories, where the caller may give a token that reaches them. One that is not there and one that is not
/// accessible are the same to the caller.
async fn judge_rights(call: &Call, judged: &Judged) -> Result<Vec<RepositoryId>, ApiError> {
    let ids = judge::parsed(&judged.repositories).unwrap_or_default();
    let found = call.app.store.find_repositories(call.organization()?, &ids).await?.len();
    let permissions = &call.caller()?.permissions;
    let accessible = found == judged.repositories.len() && ids.iter().all(|id| permissions.rights(*id).read);
    call.judge(accessible, &catalogue::REPO_ACCESS_DENIED)?;
    let organization = judged.backing == Some(Backing::Organization);
    let owner = permissions.holds(Permission::ManageOwnerAccount);
    call.judge(!organization || owner, &catalogue::SERVICE_KEY_FORBIDDEN)?;
    let of_repository = matches!(judged.backing, Some(Backing::Repository(_)));
    let manages = ids.iter().all(|id| may_manage_keys_of(permissions, *id));
    call.judge(!of_repository || manages, &catalogue::ROLE_MISMATCH)?;
    let writes = ids.iter().all(|id| permissions.rights(*id).write());
    call.judge(!judged.scope.write || writes, &catalogue::ROLE_MISMATCH)?;
    Ok(ids)
}
