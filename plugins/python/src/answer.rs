//! What several handlers answer alike.

use packhouse_sdk::{Content, Failure, Response};

/// 400 with a sentence for the person who sent it.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::invalid(text)
}

/// 404 for a name under which there is no project.
pub(crate) fn no_project(name: &str) -> Failure {
    Failure::not_found(format!("There is no project {name} in this repository"))
}

/// A document that the plugin has made: it may change at any time.
pub(crate) fn document(content: Content, media_type: &str) -> Response {
    Response::ok().content_type(media_type).revalidate().content(content)
}

/// 301 to an address that is relative to what was asked for: it holds whatever stands before this server.
pub(crate) fn moved(location: String) -> Response {
    Response::status(301).header("location", location)
}
