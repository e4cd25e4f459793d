//! What tokens and access keys have in common on the wire: the body of a rotation, and the one view that shows a secret.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given};
use crate::operations::{NewCredential, Replaced, RotationRequest};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// How a token or an access key is to be rotated.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotate {
    /// Of the successor, in ms since 1970; null for never, absent for the old one's.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// For how many hours the old one works on, 0 to 168, an access key never past its expiry; 24 where it is absent.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    overlap_hours: Field,
    /// From POST /v1/confirmations for `rotate_token`, of an access key for `manage_access_keys`; or in the header
    /// X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

impl Rotate {
    /// What is wanted. `now` in ms since 1970.
    pub(crate) fn request(&self, now: i64) -> Result<RotationRequest, ApiError> {
        let expires_at = self.expires_at.as_ref().map(|value| fields::expiry(value, now)).transpose()?;
        Ok(RotationRequest { expires_at, overlap_ms: fields::overlap(&self.overlap_hours)? * HOUR_MS })
    }

    /// The confirmation, as it came.
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
    /// Until when it works.
    ends_at: i64,
}

/// A credential that was just made, with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct WithSecret<T> {
    #[serde(flatten)]
    view: T,
    /// Shown this once; absent where another member's token was revoked in place of a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// What it takes the place of, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<ReplacedView>,
}

impl<T> WithSecret<T> {
    /// The view of what was made.
    pub(crate) fn new<R>(made: NewCredential<R>, view: impl FnOnce(R) -> T) -> WithSecret<T> {
        let replaced = made.replaced.map(|Replaced { id, ends_at }| ReplacedView { id, ends_at });
        let secret = made.secret.map(|secret| secret.reveal().to_owned());
        WithSecret { view: view(made.row), secret, replaced }
    }
}
