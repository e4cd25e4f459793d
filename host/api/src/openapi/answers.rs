//! The refusals that follow from an endpoint's right and path, so that no handler has to name them: what the transport and the query may
//! be refused with, the session, the right, and what a path may not lead to.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Type,
};

use crate::endpoint::{Endpoint, Right};

/// What every endpoint may answer.
const ALWAYS: [(u16, &str); 6] = [
    (400, "The query or the body is not right; `error` says what of it"),
    (408, "`request_timeout`: the declared body did not arrive"),
    (413, "`request_body_too_large`: too many bytes, or too many JSON tokens"),
    (415, "`unsupported_media_type`: there is a body, and it is not declared as JSON"),
    (
        500,
        "`internal_error`: something failed here; `stored_data_damaged`: stored data is missing or damaged",
    ),
    (503, "The database cannot be reached, or the server takes no changes or is being worked on"),
];

/// Adds what is not described already.
pub(crate) fn complete(operation: &mut Operation, endpoint: &Endpoint) {
    for (status, description) in ALWAYS {
        refusal(operation, status, description);
    }
    if endpoint.right == Right::Anyone {
        operation.security = Some(vec![Default::default()]);
    } else {
        refusal(operation, 401, "`not_signed_in`: no session, or one that has ended");
        refusal(operation, 429, "`rate_limited`: more requests than the operator lets through");
    }
    if matches!(endpoint.right, Right::Holds(_) | Right::OfObject) {
        refusal(operation, 403, "The caller may not do this");
    }
    if endpoint.path.contains('{') {
        refusal(operation, 404, "There is no such thing, or the caller may not know of it");
    }
}

/// Describes an answer with an error in it, unless the handler described one of this status itself.
fn refusal(operation: &mut Operation, status: u16, description: &str) {
    let answers = &mut operation.responses.responses;
    answers.entry(status.to_string()).or_insert_with(|| RefOr::T(error(status, description)));
}

fn error(status: u16, description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    let answer = ResponseBuilder::new().description(description).content("application/json", content);
    if !matches!(status, 429 | 503) {
        return answer.build();
    }
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
    let retry = HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds to wait")).build();
    answer.header("Retry-After", retry).build()
}
