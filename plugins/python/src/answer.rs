//! Responses that several handlers share.

use packhouse_sdk::{Content, Failure, Response};

/// Creates a 400 with a sentence for the client's user.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::invalid(text)
}

/// Creates a 404 for an unknown project.
pub(crate) fn no_project(name: &str) -> Failure {
    Failure::not_found(format!("There is no project {name} in this repository"))
}

/// Builds the response with a rendered document. Clients must revalidate it, because it may change
/// at any time.
pub(crate) fn document(content: Content, media_type: &str) -> Response {
    Response::ok().content_type(media_type).revalidate().content(content)
}

/// Builds a 301. `location` is relative to the address of the request, so it is correct behind any
/// reverse proxy.
pub(crate) fn moved(location: String) -> Response {
    Response::status(301).header("location", location)
}
