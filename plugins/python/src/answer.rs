//! What several handlers answer alike.

use packhouse_sdk::{Blob, Content, Context, Digest, Failure, Repository, Response};

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

/// Bytes as a blob.
pub(crate) fn written(cx: &Context, bytes: &[u8]) -> Result<Blob, Failure> {
    let mut writer = cx.writer();
    writer.write(bytes)?;
    Ok(writer.finish()?)
}

/// A blob that a record names.
pub(crate) fn held(repository: &Repository, digest: &Digest) -> Result<Blob, Failure> {
    let found = repository.blob(digest)?;
    found.ok_or_else(|| Failure::internal(format!("a record names {digest}, which is not held")))
}

/// 301 to an address that is relative to what was asked for: it holds whatever stands before this server.
pub(crate) fn moved(location: String) -> Response {
    Response::status(301).header("location", location)
}
