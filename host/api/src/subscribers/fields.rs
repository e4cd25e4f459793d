//! Fields of bodies about subscribers and groups.

use std::str::FromStr;

use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Field;
use crate::operations::key_owners::Ids;
use packhouse_identity as identity;

/// Reads a list of ids without repetition; 400 `invalid_request` if it is not a list of strings.
/// Malformed ids are counted apart: they match nothing.
pub(super) fn ids<T: FromStr + PartialEq>(field: &Value, name: &str) -> Result<Ids<T>, ApiError> {
    let wrong = || ApiError::invalid(&format!("`{name}` must be a list of ids."));
    let mut ids = Ids { known: Vec::new(), impossible: false };
    for item in field.as_array().ok_or_else(wrong)? {
        match item.as_str().ok_or_else(wrong)?.parse::<T>() {
            Ok(id) if !ids.known.contains(&id) => ids.known.push(id),
            Ok(_) => {}
            Err(_) => ids.impossible = true,
        }
    }
    Ok(ids)
}

/// Reads a list of ids that may be absent.
pub(super) fn maybe_ids<T: FromStr + PartialEq>(
    field: &Field,
    name: &str,
) -> Result<Option<Ids<T>>, ApiError> {
    field.as_ref().map(|value| ids(value, name)).transpose()
}

/// Reads an e-mail address; `None` if it is null.
pub(super) fn email(value: &Value) -> Result<Option<String>, ApiError> {
    if value.is_null() {
        return Ok(None);
    }
    let email = value.as_str().and_then(identity::email);
    email.map(Some).ok_or_else(|| ApiError::invalid("`email` must be an e-mail address."))
}
