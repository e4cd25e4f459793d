//! Body that creates an API token.

use packhouse_wire::catalogue;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::api_tokens::{ApiScope, ApiTokenOwner, ApiTokenRequest, within_lifetime};
use crate::operations::confirmations::Action;

/// An API token to create for the caller or for a service account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateApiToken {
    /// Name of 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// `me`, or the id of a service account.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    owner: Field,
    /// At least one scope. `read` opens everything that only reads, each other scope its own part
    /// of the API, and `all` opens everything that an API token may do.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<ApiScope>, required)]
    scopes: Field,
    /// Actions that need a confirmation and that the token does without a further one. All actions
    /// are possible except `create_api_token` and `change_sign_in`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<Action>>)]
    sensitive: Field,
    /// Expiry in ms since 1970: at most one year ahead, or 90 days with `sensitive`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = i64, required)]
    expires_at: Field,
    /// Token from POST /v1/confirmations for `create_api_token`, valid for five minutes. The header
    /// X-Confirmation-Token may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

impl CreateApiToken {
    /// Checks the body, without the store. `now` is Unix time in ms.
    pub(crate) fn request(&self, now: i64) -> Result<ApiTokenRequest, ApiError> {
        let name = fields::name(&self.name)?;
        let owner = owner(&self.owner)?;
        let scopes = scopes(&self.scopes)?;
        let sensitive = sensitive(&self.sensitive)?;
        let stated = self.expires_at.as_ref().ok_or(&catalogue::API_TOKEN_MUST_EXPIRE)?;
        let expires_at = within_lifetime(fields::expiry(stated, now)?, !sensitive.is_empty(), now)?;
        Ok(ApiTokenRequest { name, owner, scopes, sensitive, expires_at })
    }

    /// Confirmation token from the body, not yet checked.
    pub(super) fn confirmation(&self) -> Option<&Value> {
        self.confirmation_token.as_ref()
    }
}

fn owner(field: &Field) -> Result<ApiTokenOwner, ApiError> {
    let text = field.as_ref().and_then(Value::as_str);
    text.map(ApiTokenOwner::read)
        .ok_or_else(|| ApiError::invalid("`owner` must be `me` or the id of a service account."))
}

/// Reads the scopes: at least one, without repetition. 400 `invalid_scope`.
fn scopes(field: &Field) -> Result<Vec<ApiScope>, ApiError> {
    let scopes = texts(field).and_then(|texts| known(texts, ApiScope::of));
    scopes.filter(|scopes| !scopes.is_empty()).ok_or_else(|| {
        let names = ApiScope::EVERY.map(|scope| format!("`{}`", scope.name())).join(", ");
        ApiError::with(
            &catalogue::INVALID_API_TOKEN_SCOPE,
            &format!("`scopes` must be a list of at least one of {names}."),
        )
    })
}

/// Reads the actions, which may be absent. 400 `invalid_scope` if an API token cannot do one of
/// them.
fn sensitive(field: &Field) -> Result<Vec<Action>, ApiError> {
    if field.as_ref().is_none_or(Value::is_null) {
        return Ok(Vec::new());
    }
    let action = |name: &str| Action::OF_API_TOKENS.into_iter().find(|action| action.name() == name);
    texts(field).and_then(|texts| known(texts, action)).ok_or_else(|| {
        let names = Action::OF_API_TOKENS.map(|action| format!("`{}`", action.name())).join(", ");
        ApiError::with(
            &catalogue::INVALID_API_TOKEN_SCOPE,
            &format!("`sensitive` must be a list of these actions: {names}."),
        )
    })
}

/// Texts of a list; `None` if it is not a list of texts.
fn texts(field: &Field) -> Option<Vec<&str>> {
    field.as_ref()?.as_array()?.iter().map(Value::as_str).collect()
}

/// Values of these texts, without repetition; `None` if one of them has no value.
fn known<T: PartialEq>(texts: Vec<&str>, value: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut once = Vec::with_capacity(texts.len());
    for text in texts {
        let value = value(text)?;
        if !once.contains(&value) {
            once.push(value);
        }
    }
    Some(once)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    fn request(change: Value) -> Result<ApiTokenRequest, &'static str> {
        let mut json = json!({"name": "ci", "owner": "me", "scopes": ["read"], "expires_at": NOW + DAY_MS});
        json.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let body: CreateApiToken = serde_json::from_value(json).unwrap();
        body.request(NOW).map_err(|error| error.code().map_or("internal", |code| code.code))
    }

    #[test]
    fn a_request_names_scopes_and_actions_once() {
        let made = request(json!({"scopes": ["read", "all", "read"], "owner": "7",
            "sensitive": ["create_token", "rotate_token", "create_token"]}))
        .unwrap();
        assert_eq!(made.scopes, [ApiScope::Read, ApiScope::All]);
        assert_eq!(made.sensitive, [Action::CreateToken, Action::RotateToken]);
        assert_eq!(made.owner, ApiTokenOwner::ServiceAccount("7".to_owned()));
        assert_eq!(request(json!({"sensitive": null})).unwrap().owner, ApiTokenOwner::Me);
    }

    #[test]
    fn each_fault_has_its_code() {
        for (change, code) in [
            (json!({"name": ""}), "invalid_name"),
            (json!({"owner": null}), "invalid_request"),
            (json!({"scopes": []}), "invalid_scope"),
            (json!({"scopes": "read"}), "invalid_scope"),
            (json!({"scopes": null}), "invalid_scope"),
            (json!({"scopes": ["read", "admin"]}), "invalid_scope"),
            (json!({"scopes": ["read", 1]}), "invalid_scope"),
            (json!({"sensitive": ["sudo"]}), "invalid_scope"),
            (json!({"sensitive": ["create_api_token"]}), "invalid_scope"),
            (json!({"sensitive": ["change_sign_in"]}), "invalid_scope"),
            (json!({"sensitive": "create_token"}), "invalid_scope"),
            (json!({"expires_at": null}), "api_token_must_expire"),
            (json!({"expires_at": NOW + 365 * DAY_MS + 1}), "api_token_must_expire"),
            (
                json!({"expires_at": NOW + 90 * DAY_MS + 1, "sensitive": ["create_token"]}),
                "api_token_must_expire",
            ),
            (json!({"expires_at": NOW}), "expires_at_in_past"),
            (json!({"expires_at": "soon"}), "invalid_expires_at"),
        ] {
            assert_eq!(request(change.clone()).unwrap_err(), code, "{change}");
        }
        let absent: CreateApiToken =
            serde_json::from_value(json!({"name": "ci", "owner": "me", "scopes": ["read"]})).unwrap();
        let error = absent.request(NOW).unwrap_err();
        assert_eq!(error.code().unwrap().code, "api_token_must_expire");
    }

    #[test]
    fn a_token_lives_a_year_and_90_days_with_sensitive_actions() {
        request(json!({"expires_at": NOW + 365 * DAY_MS})).unwrap();
        request(json!({"expires_at": NOW + 90 * DAY_MS, "sensitive": ["create_token"]})).unwrap();
        request(json!({"expires_at": NOW + 365 * DAY_MS, "sensitive": []})).unwrap();
    }
}
