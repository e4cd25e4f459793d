//! The bodies of calls about access keys.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::access_keys::{AccessKeyRequest, ExpiryChange};

/// An access key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateAccessKey {
    /// 1 to 256 characters, where there is one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// ms since 1970, or null for never; must be stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}

impl CreateAccessKey {
    /// What is wanted. `now` in ms since 1970.
    pub(crate) fn request(&self, now: i64) -> Result<AccessKeyRequest, ApiError> {
        let named = self.name.as_ref().is_some_and(|name| !name.is_null());
        let name = named.then(|| fields::name(&self.name)).transpose()?;
        Ok(AccessKeyRequest { name, expires_at: fields::stated_expiry(&self.expires_at, now)? })
    }
}

/// Another expiry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeAccessKey {
    /// ms since 1970, or null for never; must be stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// The expiry as it was read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expected_expires_at: Field,
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}

impl ChangeAccessKey {
    /// What is wanted. `now` in ms since 1970.
    pub(crate) fn change(&self, now: i64) -> Result<ExpiryChange, ApiError> {
        let expires_at = fields::stated_expiry(&self.expires_at, now)?;
        Ok(ExpiryChange { expires_at, expected: fields::read_expiry(&self.expected_expires_at)? })
    }
}

/// A confirmation, unless the header has it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeAccessKey {
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Field,
}
