//! Body that creates a token. Its checks have the order of the specification's table of codes.

use packhouse_identity::access::GENERIC;
use packhouse_identity::permissions::check_patterns;
use packhouse_store::Scope;
use packhouse_wire::catalogue;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::tokens::{Backing, TokenRequest, service_key_expiry};

/// Formats of tokens in the specification. Plugins of other formats declare their own.
const FORMATS: &[&str] = &[GENERIC, "npm"];

/// A new token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateToken {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// One or both of `read` and `write`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    scope: Field,
    /// `generic`, `npm`, or a format whose plugin has tokens of its own.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    format: Field,
    /// Ids of repositories, at least one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    repositories: Field,
    /// Expiry in ms since 1970, or null for no expiry. Required.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// Owner of a service key: `{kind: "org"}`, or `{kind: "repo", id}`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    backing: Field,
    /// Patterns of the packages that the token may publish and delete, in which `*` matches any
    /// text. If absent or null, all packages. Requires the scope `write`. They do not limit reads.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Field,
    /// Token from POST /v1/confirmations for `create_token`. The header X-Confirmation-Token may
    /// carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

impl CreateToken {
    /// Checks the body, without the store. `own` are the formats whose plugins declare tokens;
    /// `now` is Unix time in ms.
    pub(crate) fn request(&self, own: &[String], now: i64) -> Result<TokenRequest, ApiError> {
        let name = fields::name(&self.name)?;
        let scope = scope(&self.scope)?;
        let format = format(&self.format, own)?;
        let repositories = repositories(&self.repositories)?;
        let expires_at = fields::stated_expiry(&self.expires_at, now)?;
        let backing = backing(&self.backing)?;
        let mut request =
            TokenRequest { name, scope, format, repositories, expires_at, backing, packages: None };
        service_key(&request, now)?;
        request.packages = packages(&self.packages, scope)?;
        Ok(request)
    }

    /// Confirmation token from the body, not yet checked.
    pub(super) fn confirmation(&self) -> Option<&Value> {
        self.confirmation_token.as_ref()
    }
}

/// Formats that tokens can have. `own` are those whose plugins declare tokens.
pub fn formats(own: &[String]) -> Vec<&str> {
    let own = own.iter().map(String::as_str).filter(|format| !FORMATS.contains(format));
    FORMATS.iter().copied().chain(own).collect()
}

/// Returns whether tokens can have this format, whatever plugins are loaded.
pub fn is_always_there(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// Reads the request from JSON that did not come in a call, with the same checks. `own` are the
/// formats whose plugins declare tokens; `now` is Unix time in ms.
pub fn from_json(body: Value, own: &[String], now: i64) -> Result<TokenRequest, ApiError> {
    let body: CreateToken = serde_json::from_value(body).map_err(|error| ApiError::Internal(error.into()))?;
    body.request(own, now)
}

/// Reads a scope: `invalid_scope` if it is invalid.
pub(crate) fn scope(field: &Field) -> Result<Scope, ApiError> {
    let wrong = || ApiError::from(&catalogue::INVALID_SCOPE);
    let items =
        field.as_ref().and_then(Value::as_array).filter(|items| !items.is_empty()).ok_or_else(wrong)?;
    let mut scope = Scope { read: false, write: false };
    for item in items {
        match item.as_str() {
            Some("read") => scope.read = true,
            Some("write") => scope.write = true,
            _ => return Err(wrong()),
        }
    }
    Ok(scope)
}

fn format(field: &Field, own: &[String]) -> Result<String, ApiError> {
    let known = |format: &&str| FORMATS.contains(format) || own.iter().any(|own| own == format);
    let format = field.as_ref().and_then(Value::as_str).filter(known);
    format.map(str::to_owned).ok_or(ApiError::from(&catalogue::INVALID_TOKEN_FORMAT))
}

/// Reads the ids: at least one, without repetition.
fn repositories(field: &Field) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::from(&catalogue::MISSING_REPO_IDS);
    let items =
        field.as_ref().and_then(Value::as_array).filter(|items| !items.is_empty()).ok_or_else(wrong)?;
    let mut ids = Vec::with_capacity(items.len());
    for item in items {
        let id = item.as_str().ok_or_else(wrong)?.to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn backing(field: &Field) -> Result<Option<Backing>, ApiError> {
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    if let Some(unknown) = names.find(|name| !matches!(*name, "kind" | "id")) {
        return Err(ApiError::invalid(&format!("`backing` has no field `{unknown}`.")));
    }
    let id = value.get("id").filter(|id| !id.is_null());
    match (value.get("kind").and_then(Value::as_str), id.map(Value::as_str)) {
        (Some("org"), _) => Ok(Some(Backing::Organization)),
        (Some("repo"), Some(Some(id))) if !id.trim().is_empty() => {
            Ok(Some(Backing::Repository(id.to_owned())))
        }
        (Some("repo"), _) => Err(ApiError::from(&catalogue::INVALID_BACKING_ID)),
        _ => Err(ApiError::from(&catalogue::INVALID_BACKING_KIND)),
    }
}

/// Reads the patterns of packages, without repetition; `None` for all packages.
fn packages(field: &Field, scope: Scope) -> Result<Option<Vec<String>>, ApiError> {
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut patterns: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let pattern = item.as_str().unwrap_or_default().to_owned();
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    // A value of another type became an empty list or an empty pattern, which are refused too.
    check_patterns(&patterns).map_err(|sentence| ApiError::invalid(&sentence))?;
    if !scope.write {
        return Err(ApiError::invalid(
            "`packages` limits what a token may publish and delete, so it requires the scope `write`.",
        ));
    }
    Ok(Some(patterns))
}

fn service_key(request: &TokenRequest, now: i64) -> Result<(), ApiError> {
    let Some(backing) = &request.backing else { return Ok(()) };
    service_key_expiry(request.expires_at, now)?;
    if request.format != GENERIC {
        return Err(ApiError::from(&catalogue::INVALID_SERVICE_KEY_FORMAT));
    }
    match backing {
        Backing::Repository(id) if request.repositories != [id.as_str()] => {
            Err(ApiError::from(&catalogue::REPO_BACKING_SCOPE_MISMATCH))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_000_000;
    /// Maximum lifetime of a service key: 90 days in ms.
    const SERVICE_KEY_MS: i64 = 90 * 24 * 60 * 60 * 1000;

    fn code(change: &[(&str, Value)]) -> &'static str {
        let mut json = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": ["1"],
            "expires_at": null});
        for (name, value) in change {
            match value {
                Value::String(text) if text == "absent" => json.as_object_mut().unwrap().remove(*name),
                value => json.as_object_mut().unwrap().insert((*name).to_owned(), value.clone()),
            };
        }
        let body: CreateToken = serde_json::from_value(json).unwrap();
        match body.request(&["fifth".to_owned()], NOW) {
            Ok(_) => "right",
            Err(ApiError::Refused { code, .. }) => code.code,
            Err(ApiError::Internal(_)) => "internal",
        }
    }

    /// Faults in the order of their checks, each with its code. If there are two, the first one
    /// decides.
    fn faults() -> Vec<(&'static str, Value, &'static str)> {
        vec![
            ("name", json!(""), "invalid_name"),
            ("scope", json!(["admin"]), "invalid_scope"),
            ("format", json!("maven"), "invalid_token_format"),
            ("repositories", json!([]), "missing_repo_ids"),
            ("expires_at", json!("absent"), "missing_expires_at"),
            ("backing", json!({"kind": "team"}), "invalid_backing_kind"),
            ("packages", json!([]), "invalid_request"),
        ]
    }

    #[test]
    fn each_fault_has_its_code_and_the_first_of_two_decides() {
        assert_eq!(code(&[]), "right");
        assert_eq!(code(&[("format", json!("fifth"))]), "right");
        let faults = faults();
        for (at, (name, value, expected)) in faults.iter().enumerate() {
            assert_eq!(code(&[(*name, value.clone())]), *expected);
            for (other, wrong, _) in &faults[at + 1..] {
                assert_eq!(
                    code(&[(*name, value.clone()), (*other, wrong.clone())]),
                    *expected,
                    "with {other}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_type_is_the_code_of_its_field() {
        for (name, value, expected) in [
            ("name", json!(1), "invalid_name"),
            ("scope", json!("read"), "invalid_scope"),
            ("scope", json!(["read", 1]), "invalid_scope"),
            ("format", json!(null), "invalid_token_format"),
            ("repositories", json!("1"), "missing_repo_ids"),
            ("repositories", json!([1]), "missing_repo_ids"),
            ("expires_at", json!("soon"), "invalid_expires_at"),
            ("expires_at", json!(1), "expires_at_in_past"),
            ("backing", json!("org"), "invalid_backing_kind"),
            ("backing", json!({"kind": "repo"}), "invalid_backing_id"),
            ("backing", json!({"kind": "repo", "id": 1}), "invalid_backing_id"),
            ("backing", json!({"kind": "org", "owner": "me"}), "invalid_request"),
        ] {
            assert_eq!(code(&[(name, value.clone())]), expected, "{name} {value}");
        }
    }

    #[test]
    fn packages_are_patterns_of_a_token_that_writes() {
        let write = ("scope", json!(["read", "write"]));
        let with = |packages: Value| code(&[write.clone(), ("packages", packages)]);
        assert_eq!((with(json!(null)), with(json!(["@acme/*", "lib"]))), ("right", "right"));
        assert_eq!(code(&[("packages", json!(null))]), "right");
        assert_eq!(code(&[("packages", json!(["lib"]))]), "invalid_request", "the token only reads");
        for wrong in [json!([]), json!([""]), json!([7]), json!("lib"), json!({}), json!(["a".repeat(257)])] {
            assert_eq!(with(wrong.clone()), "invalid_request", "{wrong}");
        }
    }

    #[test]
    fn a_service_key_is_generic_ends_and_keeps_to_its_repository() {
        let org = ("backing", json!({"kind": "org"}));
        let repo = ("backing", json!({"kind": "repo", "id": "1"}));
        let soon = ("expires_at", json!(NOW + SERVICE_KEY_MS));
        let late = ("expires_at", json!(NOW + SERVICE_KEY_MS + 1));
        assert_eq!(code(std::slice::from_ref(&org)), "service_key_must_expire");
        assert_eq!(code(&[org.clone(), late]), "service_key_must_expire");
        assert_eq!(code(&[org.clone(), soon.clone()]), "right");
        assert_eq!(code(&[org, soon.clone(), ("format", json!("npm"))]), "invalid_service_key_format");
        assert_eq!(code(&[repo.clone(), soon.clone()]), "right");
        let two = ("repositories", json!(["1", "2"]));
        assert_eq!(code(&[repo, soon, two]), "repo_backing_scope_mismatch");
    }
}
