//! `POST /v1/repositories`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_runtime::Description;
use packhouse_store::NewRepository;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::check;
use super::view::{RepositoryView, Upstream, base_url};
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{Field, given};
use packhouse_wire::catalogue;

/// A repository to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// `[a-z0-9]+([._-][a-z0-9]+)*`, at most 64 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// That of a loaded plugin.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    format: Field,
    /// One that the format's plugin lists.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    kind: Field,
    /// Of a proxy.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Upstream>)]
    upstream: Field,
    /// Of a group: ids of repositories, in order.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    members: Field,
    /// What is to differ from the defaults.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
}

/// Makes a repository. A public one needs read in every repository besides: `*`.
#[utoipa::path(post, operation_id = "create_repository",
    path = "/v1/repositories", request_body = Create, responses(
    (status = 201, body = RepositoryView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn create(mut call: Call) -> Answer {
    let wanted: Create = call.body()?;
    call.only(&[])?;
    let plugins = call.app.runtime.plugins();
    let formats: Vec<&Description> = plugins.iter().map(|plugin| plugin.description()).collect();
    let new = judge_body(&formats, &wanted)?;
    let caller = call.judge_permission()?;
    if new.public {
        super::may_open(&call, caller.permissions.rights_in_a_new_one())?;
    }
    let organization = caller.member.organization;
    if call.app.store.look_up(organization, &new.name, None).await?.repository.is_some() {
        return Err(ApiError::from(&catalogue::REPOSITORY_ALREADY_EXISTS));
    }
    check::members_exist(&call, &new.members, &new.format).await?;
    let event = call.event("create_repository", new.name.clone())?;
    let row = call.app.store.create_repository(organization, new, event).await?;
    // Another call may have been first since the look-up: the database alone decides.
    let row = row.ok_or(&catalogue::REPOSITORY_ALREADY_EXISTS)?;
    let view = RepositoryView::new(&call.app, &base_url(&call).await?, row);
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Judges a repository that is wanted elsewhere than in a call, as the call would.
pub fn wanted(formats: &[&Description], body: Value) -> Result<NewRepository, ApiError> {
    let wanted = serde_json::from_value(body).map_err(|error| ApiError::Internal(error.into()))?;
    judge_body(formats, &wanted)
}

/// What the body alone shows, given the formats there are.
fn judge_body(formats: &[&Description], wanted: &Create) -> Result<NewRepository, ApiError> {
    let name = check::name(&wanted.name)?;
    let text = |field: &Field| field.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let format = text(&wanted.format);
    let Some(description) = formats.iter().find(|description| description.format == format) else {
        let names: Vec<&str> = formats.iter().map(|description| description.format.as_str()).collect();
        return Err(ApiError::with(&catalogue::INVALID_FORMAT, &names.join(", ")));
    };
    let kind = text(&wanted.kind);
    if !description.kinds.contains(&kind) {
        return Err(ApiError::with(&catalogue::INVALID_KIND, &description.kinds.join(", ")));
    }
    let upstream = check::upstream(&wanted.upstream, &kind)?;
    let (settings, public) = check::settings(&wanted.settings, Some(description))?;
    let members = check::members(&wanted.members, &kind)?.unwrap_or_default();
    let settings = Value::Object(packhouse_config::repository_settings::merge("{}", settings)).to_string();
    Ok(NewRepository { name, format, kind, public: public.unwrap_or_default(), settings, upstream, members })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(body: Value) -> &'static str {
        let description = json!({"format": "fifth", "version": "1", "kinds": ["hosted", "proxy", "group"],
            "settings": {"depth": {"kind": "integer", "default": 3}}});
        let description: Description = serde_json::from_value(description).unwrap();
        let wanted: Create = serde_json::from_value(body).unwrap();
        match judge_body(&[&description], &wanted) {
            Ok(_) => "right",
            Err(ApiError::Refused { code, .. }) => code.code,
            Err(ApiError::Internal(_)) => "internal",
        }
    }

    #[test]
    fn formats_and_kinds_are_those_of_the_plugins() {
        let body = |format: &str, kind: &str| json!({"name": "a", "format": format, "kind": kind});
        assert_eq!(code(body("fifth", "hosted")), "right");
        assert_eq!(code(body("sixth", "hosted")), "invalid_format");
        assert_eq!(code(body("fifth", "mirror")), "invalid_kind");
        assert_eq!(code(body("fifth", "proxy")), "invalid_upstream");
        assert_eq!(code(json!({"name": "A", "format": "sixth", "kind": 1})), "invalid_repository_name");
        assert_eq!(code(json!({"name": "a", "format": 7, "kind": 1})), "invalid_format");
    }

    #[test]
    fn settings_are_the_hosts_and_the_plugins() {
        let with = |settings: Value| {
            code(json!({"name": "a", "format": "fifth", "kind": "hosted", "settings": settings}))
        };
        assert_eq!(with(json!({"public": true, "depth": 5})), "right");
        assert_eq!(with(json!({"depth": "deep"})), "invalid_settings");
        assert_eq!(with(json!({"width": 5})), "invalid_settings");
        assert_eq!(with(json!([])), "invalid_settings");
    }
}
