//! Request parsing and responses that several handlers share.

use crate::checksum::Algorithm;
use crate::index::IndexDocument;
use crate::layout::{BadPath, PathTarget};
use crate::sums;
use packhouse_sdk::{Content, Context, Failure, Request, Response};

/// Largest response, in bytes, that is sent inline instead of as a blob.
const INLINE: usize = 1_048_576;

/// Parses the path of a request.
pub(crate) fn parse(request: &Request) -> Result<PathTarget, Failure> {
    PathTarget::parse(&request.path).map_err(bad_path)
}

/// 400: the path is invalid.
pub(crate) fn bad_path(BadPath(text): BadPath) -> Failure {
    Failure::new(400, "invalid_path", text)
}

/// 404: nothing is stored at this path.
pub(crate) fn missing(path: &str) -> Failure {
    Failure::not_found(format!("Nothing is stored at {path}"))
}

/// Responds with a document. The headers carry the checksums that clients would request next.
pub(crate) fn document_response(
    cx: &Context,
    document: IndexDocument,
    media_type: &str,
) -> Result<Response, Failure> {
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
