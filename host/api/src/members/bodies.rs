//! The bodies of calls about members.

use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Secret};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::operations::members::{Acceptance, MemberRequest, OwnChange};

/// A new member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateMember {
    /// E-mail address with which the member signs in.
    email: String,
    /// Displayed name.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
    /// Permissions, at most those of the caller.
    permissions: Permissions,
    /// Confirmation token for the action `manage_members`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    pub(crate) confirmation_token: Option<Value>,
}

impl CreateMember {
    pub(crate) fn request(self) -> Result<MemberRequest, ApiError> {
        Ok(MemberRequest {
            name: name(self.name)?,
            email: email(&self.email)?,
            password: password(self.password)?,
            permissions: permissions(self.permissions)?,
        })
    }
}

/// Suspension or reactivation of a member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMember {
    /// False suspends the member; true reactivates it.
    pub(crate) active: bool,
}

/// The complete new permissions of a member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetPermissions {
    pub(crate) permissions: Permissions,
}

/// An invitation of a new member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Invite {
    /// E-mail address with which the member will sign in.
    pub(crate) email: String,
    /// Permissions, at most those of the caller.
    pub(crate) permissions: Permissions,
}

/// Account of the member who accepts an invitation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accept {
    /// Displayed name.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
}

impl Accept {
    pub(crate) fn acceptance(self) -> Result<Acceptance, ApiError> {
        Ok(Acceptance { name: name(self.name)?, password: password(self.password)? })
    }
}

/// A member's changes to their own account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMe {
    /// Displayed name; may be empty.
    name: Option<String>,
    /// The new password: 8 characters or more.
    password: Option<String>,
    /// The current password, required with `password`.
    current_password: Option<String>,
}

impl ChangeMe {
    pub(crate) fn change(self) -> Result<OwnChange, ApiError> {
        let named = self.name.is_some();
        let name = self.name.map(|text| name(Some(text))).transpose()?;
        let password = match (self.password, self.current_password) {
            (Some(new), Some(current)) => Some((password(new)?, Secret::new(current))),
            (Some(_), None) => {
                return Err(ApiError::invalid("A new `password` requires `current_password`."));
            }
            (None, Some(_)) => {
                return Err(ApiError::invalid(
                    "`current_password` is only allowed together with a new `password`.",
                ));
            }
            (None, None) if named => None,
            (None, None) => return Err(ApiError::invalid("Send a `name` or a `password`.")),
        };
        Ok(OwnChange { name, password })
    }
}

/// Request for a password reset code. An empty object is enough if a header carries the
/// confirmation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reset {
    /// Confirmation token for the action `manage_members`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    pub(crate) confirmation_token: Option<Value>,
}

/// The new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    /// 8 characters or more.
    pub(crate) password: String,
}

/// Normalizes an e-mail address; 400 `invalid_request` if it is invalid.
pub(crate) fn email(text: &str) -> Result<String, ApiError> {
    identity::email(text).ok_or_else(|| ApiError::invalid("`email` must be an e-mail address."))
}

/// Checks permissions and removes duplicates; 400 `invalid_request` if they are invalid.
pub(crate) fn permissions(given: Permissions) -> Result<Permissions, ApiError> {
    given.check().map_err(|sentence| ApiError::invalid(&sentence))?;
    Ok(given.deduplicated())
}

/// Checks a new password; 400 `invalid_request` if it is too short, too long, or looks like a
/// token.
pub(crate) fn password(text: String) -> Result<Secret, ApiError> {
    identity::new_password(&text).map_err(|reason| ApiError::invalid(&format!("`password` {reason}.")))
}

/// Checks a person's name, which may be empty; 400 `invalid_name` if it is invalid.
pub(crate) fn name(text: Option<String>) -> Result<String, ApiError> {
    match text.filter(|name| !name.is_empty()) {
        Some(name) => crate::fields::name(&Some(name.into())),
        None => Ok(String::new()),
    }
}
