//! Bodies that tokens and access keys share: the rotation request, and the only view with a secret.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::{NewCredential, Replaced, RotationRequest};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// A rotation of a token or an access key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotate {
    /// Expiry of the successor in ms since 1970; null for no expiry; if absent, the old
    /// credential's.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// Hours for which the old credential remains valid, 0 to 168; 24 by default. An access key
    /// never outlives its expiry.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    overlap_hours: Field,
    /// Token from POST /v1/confirmations for `rotate_token`, or for `manage_access_keys` to rotate
    /// an access key. The header X-Confirmation-Token may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

impl Rotate {
    /// Checks the body. `now` is Unix time in ms.
    pub(crate) fn request(&self, now: i64) -> Result<RotationRequest, ApiError> {
        let expires_at = self.expires_at.as_ref().map(|value| fields::expiry(value, now)).transpose()?;
        Ok(RotationRequest { expires_at, overlap_ms: fields::overlap(&self.overlap_hours)? * HOUR_MS })
    }

    /// Confirmation token from the body, not yet checked.
    pub(crate) fn confirmation(&self) -> Option<&Value> {
        self.confirmation_token.as_ref()
    }
}

/// The credential that was rotated.
#[derive(Serialize, ToSchema)]
#[schema(as = Replaced)]
pub(crate) struct ReplacedView {
    /// Its id.
    id: String,
    /// Time in ms since 1970 until which it is valid.
    ends_at: i64,
}

/// A new credential with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct WithSecret<T> {
    #[serde(flatten)]
    view: T,
    /// The secret, shown only once; absent if another member's token was revoked instead of
    /// rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// The credential that it replaces, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<ReplacedView>,
}

impl<T> WithSecret<T> {
    /// View of the new credential.
    pub(crate) fn new<R>(made: NewCredential<R>, view: impl FnOnce(R) -> T) -> WithSecret<T> {
        let replaced = made.replaced.map(|Replaced { id, ends_at }| ReplacedView { id, ends_at });
        let secret = made.secret.map(|secret| secret.reveal().to_owned());
        WithSecret { view: view(made.row), secret, replaced }
    }
}
