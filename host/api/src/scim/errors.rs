//! Errors of SCIM (RFC 7644, section 3.12). They also have the fields of every other error, so that
//! a person finds the request in the server's log.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use packhouse_wire::catalogue::{self, Code};
use serde::Serialize;
use utoipa::ToSchema;

use super::SCIM_JSON;
use crate::error_response::ErrorBody;

const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

/// Codes that have a `scimType`, with this type.
static TYPES: [(&Code, &str); 11] = [
    (&catalogue::USER_ALREADY_EXISTS, "uniqueness"),
    (&catalogue::TEAM_ALREADY_EXISTS, "uniqueness"),
    (&catalogue::INVALID_SCIM_FILTER, "invalidFilter"),
    (&catalogue::INVALID_SCIM_VALUE, "invalidValue"),
    (&catalogue::INVALID_NAME, "invalidValue"),
    (&catalogue::INVALID_TEAM_NAME, "invalidValue"),
    (&catalogue::INVALID_SCIM_PATH, "invalidPath"),
    (&catalogue::SCIM_TARGET_REQUIRED, "noTarget"),
    (&catalogue::IMMUTABLE_FIELD, "mutability"),
    (&catalogue::MALFORMED_JSON, "invalidSyntax"),
    (&catalogue::INVALID_REQUEST, "invalidSyntax"),
];

/// The body of every error of SCIM.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScimErrorBody {
    schemas: Vec<&'static str>,
    /// Kind of the error, where RFC 7644 defines one, for example `uniqueness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scim_type: Option<&'static str>,
    /// The message for people again.
    detail: String,
    /// HTTP status, as a text.
    status: String,
    #[serde(flatten)]
    error: ErrorBody,
}

/// Response with an error in the form of SCIM.
pub(crate) fn response(status: StatusCode, code: &Code, error: ErrorBody) -> Response {
    let known = TYPES.iter().find(|(known, _)| std::ptr::eq(*known, code));
    let body = ScimErrorBody {
        schemas: vec![ERROR],
        scim_type: known.map(|(_, scim_type)| *scim_type),
        detail: error.message.clone(),
        status: status.as_u16().to_string(),
        error,
    };
    let mut response = (status, axum::Json(body)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(SCIM_JSON));
    response
}
