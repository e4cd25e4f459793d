//! SCIM 2.0 (RFC 7643 and 7644): a company's directory manages members as users and teams as
//! groups. The calls need the permission manage-members. Unknown attributes are ignored, and names
//! of attributes are case-insensitive.

mod discovery;
pub(crate) mod errors;
mod filter;
mod group;
mod groups;
mod lists;
mod patch;
mod projection;
mod schemas;
mod user;
mod users;

use axum::response::IntoResponse;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use packhouse_advisories::time;
use packhouse_wire::catalogue;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::Described;
use crate::error::ApiError;

/// Media type of SCIM, which clients send and receive.
pub(crate) const SCIM_JSON: &str = "application/scim+json";

/// Beginning of all paths of SCIM.
const BASE: &str = "/scim/v2";

/// Maximum length of a text that is stored, in characters.
const LONGEST: usize = 256;

pub(crate) fn endpoints() -> Vec<Described> {
    let modules = [users::endpoints(), groups::endpoints(), discovery::endpoints()];
    modules.into_iter().flatten().collect()
}

/// Facts about a resource itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScimMeta {
    resource_type: &'static str,
    /// Time of its creation, as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// Address of the resource, complete.
    location: String,
}

impl ScimMeta {
    /// Facts about a resource that was created at this time, in ms since 1970.
    fn of(resource_type: &'static str, created_at: i64, location: String) -> ScimMeta {
        ScimMeta { resource_type, created: Some(time(created_at)), location }
    }
}

/// Address of SCIM on this server.
fn base(call: &Call) -> String {
    format!("{}{BASE}", call.api_url())
}

/// Response with a resource that was created, at this address.
fn created(location: &str, resource: &Value) -> HandlerResult {
    let location = HeaderValue::try_from(location).map_err(anyhow::Error::from)?;
    let mut response = answer(StatusCode::CREATED, resource)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// Response that contains this resource.
fn answer(status: StatusCode, resource: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(resource).map_err(anyhow::Error::from)?;
    Ok((status, [(CONTENT_TYPE, SCIM_JSON)], body).into_response())
}

/// Returns an attribute of an object by its name, which is case-insensitive.
fn attribute<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// 400 `invalid_value` with a sentence about the value.
fn invalid_value(sentence: &str) -> ApiError {
    ApiError::with(&catalogue::INVALID_SCIM_VALUE, sentence)
}

/// Reads a text that is stored; null is the empty text.
fn stored_text(name: &str, value: &Value) -> Result<String, ApiError> {
    let text = match value {
        Value::Null => Some(""),
        value => value.as_str(),
    };
    let is_valid = |text: &&str| text.chars().count() <= LONGEST && !text.contains(char::is_control);
    let text = text.filter(is_valid).map(str::to_owned);
    text.ok_or_else(|| {
        let length = format!("at most {LONGEST} characters, without control characters");
        invalid_value(&format!("`{name}` must be a text of {length}"))
    })
}
