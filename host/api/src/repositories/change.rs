//! `PATCH` and `DELETE /v1/repositories/{id}`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::RepositoryRow;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use super::view::{RepositoryView, Upstream, base_url};
use super::{check, find};
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{Field, given};
use packhouse_config::repository_settings;
use packhouse_wire::catalogue;

/// What is to change; what is absent stays. `name`, `format` and `kind` cannot be changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    name: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    format: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    kind: Field,
    /// Settings that change; null takes one back to its default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
    /// Of a group: all its members from now on, in order.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    members: Field,
    /// Of a proxy.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Upstream>)]
    upstream: Field,
}

/// Changes a repository. To make it public needs read there. The credentials for a proxy's upstream are taken away where another
/// server or way is named to it: they were given for the one that was.
#[utoipa::path(patch, operation_id = "change_repository", path = "/v1/repositories/{id}",
    params(("id" = String, Path)), request_body = Change,
    responses((status = 200, body = RepositoryView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn change(mut call: Call) -> Answer {
    let wanted: Change = call.body()?;
    call.only(&[])?;
    immutable(&wanted)?;
    let row = loop {
        let row = find(&call).await?;
        call.judge_permission()?;
        let changed = apply(&call, row.clone(), &wanted).await?;
        if changed.public && !row.public {
            super::may_open(&call, call.caller()?.permissions.rights(row.id))?;
        }
        let elsewhere = leads_elsewhere(&row, &changed);
        let event = call.event("change_repository", changed.name.clone())?;
        if call.app.store.update_repository(&changed, elsewhere, event).await? {
            break changed;
        }
        // Someone else changed it between reading and writing: once more, on what there is now.
    };
    let view = RepositoryView::new(&call.app, &base_url(&call).await?, row);
    Ok(Json(view).into_response())
}

/// Whether a proxy would show its credentials to another server than before, or by another way: where the address has another scheme,
/// host or port, where requests leave by another proxy, and where others may vouch for the server.
fn leads_elsewhere(before: &RepositoryRow, after: &RepositoryRow) -> bool {
    let origin = |row: &RepositoryRow| {
        row.upstream.as_deref().and_then(|url| Url::parse(url).ok()).map(|url| url.origin())
    };
    let way = |row: &RepositoryRow| {
        let set: Map<String, Value> = serde_json::from_str(&row.settings).unwrap_or_default();
        repository_settings::WAYS.map(|name| set.get(name).cloned())
    };
    origin(before) != origin(after) || way(before) != way(after)
}

fn immutable(wanted: &Change) -> Result<(), ApiError> {
    let fields = [("name", &wanted.name), ("format", &wanted.format), ("kind", &wanted.kind)];
    match fields.into_iter().find(|(_, field)| field.is_some()) {
        Some((name, _)) => Err(ApiError::with(&catalogue::IMMUTABLE_FIELD, name)),
        None => Ok(()),
    }
}

async fn apply(call: &Call, mut row: RepositoryRow, wanted: &Change) -> Result<RepositoryRow, ApiError> {
    let plugin = call.app.runtime.plugin(&row.format);
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let (changed, public) = check::settings(&wanted.settings, description)?;
    row.settings = Value::Object(repository_settings::merge(&row.settings, changed)).to_string().into();
    row.public = public.unwrap_or(row.public);
    if wanted.upstream.is_some() {
        row.upstream = check::upstream(&wanted.upstream, &row.kind)?;
    }
    if let Some(members) = check::members(&wanted.members, &row.kind)? {
        check::members_exist(call, &members, &row.format).await?;
        row.members = members;
    }
    Ok(row)
}

/// Deletes a repository with all that it holds.
#[utoipa::path(delete, operation_id = "delete_repository", path = "/v1/repositories/{id}",
    params(("id" = String, Path)), responses((status = 204),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody)))]
pub async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    let row = find(&call).await?;
    let organization = call.judge_permission()?.member.organization;
    if !call.app.store.groups_of(organization, row.id).await?.is_empty() {
        return Err(ApiError::from(&catalogue::REPOSITORY_IN_USE));
    }
    let event = call.event("delete_repository", row.name.clone())?;
    match call.app.store.delete_repository(organization, row.id, event).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}
