//! The bodies of calls about access keys.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::access_keys::{AccessKeyRequest, ExpiryChange};

/// A new access key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateAccessKey {
    /// Optional name of 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Expiry in ms since 1970, or null for no expiry. Required.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// Token from POST /v1/confirmations for `manage_access_keys`. The header X-Confirmation-Token
    /// may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}

impl CreateAccessKey {
    /// Checks the body. `now` is Unix time in ms.
    pub(crate) fn request(&self, now: i64) -> Result<AccessKeyRequest, ApiError> {
        let named = self.name.as_ref().is_some_and(|name| !name.is_null());
        let name = named.then(|| fields::name(&self.name)).transpose()?;
        Ok(AccessKeyRequest { name, expires_at: fields::stated_expiry(&self.expires_at, now)? })
    }
}

/// A new expiry for an access key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeAccessKey {
    /// Expiry in ms since 1970, or null for no expiry. Required.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// The present expiry, as you read it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expected_expires_at: Field,
    /// Token from POST /v1/confirmations for `manage_access_keys`. The header X-Confirmation-Token
    /// may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}

impl ChangeAccessKey {
    /// Checks the body. `now` is Unix time in ms.
    pub(crate) fn change(&self, now: i64) -> Result<ExpiryChange, ApiError> {
        let expires_at = fields::stated_expiry(&self.expires_at, now)?;
        Ok(ExpiryChange { expires_at, expected: fields::read_expiry(&self.expected_expires_at)? })
    }
}

/// A confirmation, unless the header carries it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeAccessKey {
    /// Token from POST /v1/confirmations for `manage_access_keys`. The header X-Confirmation-Token
    /// may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}
