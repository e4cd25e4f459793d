//! Bodies that create or change a repository.

use packhouse_config::repository_settings;
use packhouse_runtime::Description;
use packhouse_store::NewRepository;
use packhouse_wire::catalogue;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::view::Upstream;
use crate::error::ApiError;
use crate::fields::{Field, given};
use crate::operations::repositories::{RepositoryChange, rules};

/// A new repository.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateRepository {
    /// `[a-z0-9]+([._-][a-z0-9]+)*`, at most 64 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Format of a loaded plugin.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    format: Field,
    /// A kind that the format's plugin supports.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    kind: Field,
    /// Upstream of a proxy.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Upstream>)]
    upstream: Field,
    /// Members of a group: ids of repositories, in order.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    members: Field,
    /// Settings that differ from the defaults.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
}

/// Changes to a repository; absent fields stay as they are. `name`, `format` and `kind` cannot be
/// changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRepository {
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    name: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    format: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(ignore)]
    kind: Field,
    /// Settings that change; null resets one to its default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
    /// All members of a group from now on, in order.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    members: Field,
    /// Upstream of a proxy.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Upstream>)]
    upstream: Field,
}

impl ChangeRepository {
    /// Checks the body: 400 `immutable_field` for a field that cannot be changed.
    pub(super) fn change(self) -> Result<RepositoryChange, ApiError> {
        let fields = [("name", &self.name), ("format", &self.format), ("kind", &self.kind)];
        match fields.into_iter().find(|(_, field)| field.is_some()) {
            Some((name, _)) => Err(ApiError::with(&catalogue::IMMUTABLE_FIELD, name)),
            None => {
                let ChangeRepository { settings, members, upstream, .. } = self;
                Ok(RepositoryChange { settings, members, upstream })
            }
        }
    }
}

/// Reads a repository from JSON that did not come in a call, with the same checks. `formats` are
/// the available ones.
pub fn from_json(formats: &[&Description], body: Value) -> Result<NewRepository, ApiError> {
    let body = serde_json::from_value(body).map_err(|error| ApiError::Internal(error.into()))?;
    judge(formats, &body)
}

/// Checks the body, without the store. `formats` are the available ones.
pub(super) fn judge(formats: &[&Description], body: &CreateRepository) -> Result<NewRepository, ApiError> {
    let name = rules::name(&body.name)?;
    let text = |field: &Field| field.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let format = text(&body.format);
    let Some(description) = formats.iter().find(|description| description.format == format) else {
        let names: Vec<&str> = formats.iter().map(|description| description.format.as_str()).collect();
        return Err(ApiError::with(&catalogue::INVALID_FORMAT, &names.join(", ")));
    };
    let kind = text(&body.kind);
    if !description.kinds.contains(&kind) {
        return Err(ApiError::with(&catalogue::INVALID_KIND, &description.kinds.join(", ")));
    }
    let upstream = rules::upstream(&body.upstream, &kind)?;
    let (settings, public) = rules::settings(&body.settings, Some(description))?;
    let members = rules::members(&body.members, &kind)?.unwrap_or_default();
    let settings = Value::Object(repository_settings::merge("{}", settings)).to_string();
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
        let body: CreateRepository = serde_json::from_value(body).unwrap();
        match judge(&[&description], &body) {
            Ok(_) => "right",
            Err(ApiError::Refused { code, .. }) => code.code,
            Err(ApiError::Internal(_)) => "internal",
        }
    }

    #[test]
    fn formats_and_kinds_come_from_the_plugins() {
        let body = |format: &str, kind: &str| json!({"name": "a", "format": format, "kind": kind});
        assert_eq!(code(body("fifth", "hosted")), "right");
        assert_eq!(code(body("sixth", "hosted")), "invalid_format");
        assert_eq!(code(body("fifth", "mirror")), "invalid_kind");
        assert_eq!(code(body("fifth", "proxy")), "invalid_upstream");
        assert_eq!(code(json!({"name": "A", "format": "sixth", "kind": 1})), "invalid_repository_name");
        assert_eq!(code(json!({"name": "a", "format": 7, "kind": 1})), "invalid_format");
    }

    #[test]
    fn settings_come_from_the_host_and_the_plugin() {
        let with = |settings: Value| {
            code(json!({"name": "a", "format": "fifth", "kind": "hosted", "settings": settings}))
        };
        assert_eq!(with(json!({"public": true, "depth": 5})), "right");
        assert_eq!(with(json!({"depth": "deep"})), "invalid_settings");
        assert_eq!(with(json!({"width": 5})), "invalid_settings");
        assert_eq!(with(json!([])), "invalid_settings");
    }
}
