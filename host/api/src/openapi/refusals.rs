//! Refusals that follow from an endpoint's right and path, so that no handler describes them: for
//! the header fields and the query, the session, the right, and unknown paths.

use serde_json::json;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Type,
};

use super::{API_TOKEN, SESSION};
use crate::endpoint::{Endpoint, Right, SCOPE};
use crate::scim::SCIM_JSON;

/// Scopes of OAuth, which the credentials of this API do not have.
const NO_SCOPES: [&str; 0] = [];

/// Refusals that every endpoint can return.
const ALWAYS: [(u16, &str); 6] = [
    (400, "Invalid query or body; see `error`"),
    (408, "`request_timeout`: the request body did not arrive in time"),
    (413, "`request_body_too_large`: the body has too many bytes or too many JSON tokens"),
    (415, "`unsupported_media_type`: the body is not declared as JSON"),
    (500, "`internal_error`: see the server log; `stored_data_damaged`: stored data is missing or damaged"),
    (503, "The database cannot be reached, or the server is read-only or under maintenance"),
];

/// Adds the refusals that the handler does not describe itself, and the scopes that open the
/// endpoint in place of its family.
pub(crate) fn complete(operation: &mut Operation, endpoint: &Endpoint) {
    let scopes = endpoint.scopes();
    operation.extensions.get_or_insert_default().insert(SCOPE.to_owned(), json!(scopes));
    for (status, description) in ALWAYS {
        refusal(operation, status, description);
    }
    if endpoint.right == Right::Anyone {
        operation.security = Some(vec![Default::default()]);
    } else {
        refusal(operation, 401, "`not_signed_in`: the session or API token is missing or has ended");
        refusal(operation, 429, "`rate_limited`: the request exceeds the operator's rate limit");
    }
    if matches!(endpoint.right, Right::Holds(_) | Right::OfObject) {
        refusal(operation, 403, "The caller does not have the permission that this requires");
    } else if endpoint.right == Right::SignedIn {
        refusal(operation, 403, "`scope_mismatch_api`: the API token has no scope that opens this");
    }
    if !scopes.is_empty() {
        let credentials = [SESSION, API_TOKEN];
        operation.security = Some(credentials.map(|name| SecurityRequirement::new(name, NO_SCOPES)).into());
    }
    if endpoint.path.contains('{') {
        refusal(operation, 404, "The resource does not exist, or the caller may not see it");
    }
    if endpoint.is_of_scim() {
        operation.responses.responses.values_mut().for_each(in_form_of_scim);
    }
}

/// Describes an error response in the form of SCIM.
fn in_form_of_scim(response: &mut RefOr<Response>) {
    if let RefOr::T(response) = response
        && response.content.contains_key("application/json")
    {
        let body = Ref::from_schema_name("ScimErrorBody");
        let content = ContentBuilder::new().schema(Some(body)).build();
        response.content.clear();
        response.content.insert(SCIM_JSON.to_owned(), RefOr::T(content));
    }
}

/// Describes an error response, unless the handler describes this status itself.
fn refusal(operation: &mut Operation, status: u16, description: &str) {
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_string()).or_insert_with(|| RefOr::T(error(status, description)));
}

fn error(status: u16, description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    let response = ResponseBuilder::new().description(description).content("application/json", content);
    if !matches!(status, 429 | 503) {
        return response.build();
    }
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
    let retry = HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds to wait")).build();
    response.header("Retry-After", retry).build()
}
