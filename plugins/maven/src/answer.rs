//! What several handlers read of a request, and answer alike.

use crate::checksum::Algorithm;
use crate::index::Document;
use crate::layout::{BadPath, Target};
use crate::sums;
use packhouse_sdk::{Content, Context, Failure, Request, Response};

/// Bytes of an answer that need not be a blob.
const INLINE: usize = 1_048_576;

/// What a request's path names.
pub(crate) fn parse(request: &Request) -> Result<Target, Failure> {
    Target::parse(&request.path).map_err(bad_path)
}

/// 400 for a path that names nothing.
pub(crate) fn bad_path(BadPath(text): BadPath) -> Failure {
    Failure::new(400, "invalid_path", text)
}

/// 404 for a path at which nothing is stored.
pub(crate) fn missing(path: &str) -> Failure {
    Failure::not_found(format!("Nothing is stored at {path}"))
}

/// A document that the plugin makes, with the checksums that clients ask for next.
pub(crate) fn made(cx: &Context, document: Document, media_type: &str) -> Result<Response, Failure> {
    let blob = cx.write_blob(&document.bytes)?;
    let mut response = Response::ok().content_type(media_type).revalidate();
    for algorithm in [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256] {
        response = sums::header(response, algorithm, blob.digest(algorithm.name())?.hex());
    }
    if document.modified > 0 {
        response = response.modified(document.modified);
    }
    let small = document.bytes.len() <= INLINE;
    Ok(response.content(if small { Content::Inline(document.bytes) } else { Content::Blob(blob) }))
}
