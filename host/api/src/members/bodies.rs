//! The bodies of calls about members.

use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Secret};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::operations::members::{Acceptance, MemberRequest, OwnChange};

/// A member to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateMember {
    /// By which the member signs in.
    email: String,
    /// As people see it.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
    /// No more than the caller's own.
    permissions: Permissions,
    /// Of the action `manage_members`; good for five minutes. The header `X-Confirmation-Token` will do as well.
    #[schema(value_type = Option<String>)]
    pub(crate) confirmation_token: Option<Value>,
}

impl CreateMember {
    /// What is wanted.
    pub(crate) fn request(self) -> Result<MemberRequest, ApiError> {
        Ok(MemberRequest {
            name: name(self.name)?,
            email: email(&self.email)?,
            password: password(self.password)?,
            permissions: self.permissions.once_each(),
        })
    }
}

/// All that a member may do from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetPermissions {
    pub(crate) permissions: Permissions,
}

/// Who is invited.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Invite {
    /// By which the member will sign in.
    pub(crate) email: String,
    /// No more than the caller's own.
    pub(crate) permissions: Permissions,
}

/// Who accepts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accept {
    /// As people see it.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
}

impl Accept {
    /// Who becomes the member.
    pub(crate) fn acceptance(self) -> Result<Acceptance, ApiError> {
        Ok(Acceptance { name: name(self.name)?, password: password(self.password)? })
    }
}

/// What a member changes of itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMe {
    /// As people see it; may be empty.
    name: Option<String>,
    /// The new one: 8 characters or more.
    password: Option<String>,
    /// Needed with `password`.
    current_password: Option<String>,
}

impl ChangeMe {
    /// What is wanted.
    pub(crate) fn change(self) -> Result<OwnChange, ApiError> {
        let named = self.name.is_some();
        let name = self.name.map(|text| name(Some(text))).transpose()?;
        let password = match (self.password, self.current_password) {
            (Some(new), Some(current)) => Some((password(new)?, Secret::new(current))),
            (Some(_), None) => return Err(ApiError::invalid("A new `password` needs `current_password`.")),
            (None, Some(_)) => {
                return Err(ApiError::invalid("`current_password` goes with a new `password`."));
            }
            (None, None) if named => None,
            (None, None) => return Err(ApiError::invalid("Send a `name` or a `password`.")),
        };
        Ok(OwnChange { name, password })
    }
}

/// A code for a new password: an empty object will do, with the confirmation in a header.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reset {
    /// Of the action `manage_members`; good for five minutes. The header `X-Confirmation-Token` will do as well.
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

/// An e-mail address as it is kept; 400 `invalid_request` where it is none.
pub(crate) fn email(text: &str) -> Result<String, ApiError> {
    identity::email(text).ok_or_else(|| ApiError::invalid("`email` is no e-mail address."))
}

/// A new password; 400 `invalid_request` where it is too short or too long, or is taken for a token.
pub(crate) fn password(text: String) -> Result<Secret, ApiError> {
    identity::new_password(&text).map_err(|reason| ApiError::invalid(&format!("`password` {reason}.")))
}

/// A person's name, which may be empty; 400 `invalid_name` for one that a name cannot be.
pub(crate) fn name(text: Option<String>) -> Result<String, ApiError> {
    match text.filter(|name| !name.is_empty()) {
        Some(name) => crate::fields::name(&Some(name.into())),
        None => Ok(String::new()),
    }
}
