//! Counts downloads and records which files tokens fetched. The count changes in memory when the
//! response begins, whether or not the response comes from the cache. The store writes it to the
//! database later.

use http::header::{CONTENT_RANGE, RANGE};
use http::{Method, Response, StatusCode};
use packhouse_runtime::Content;
use packhouse_store::{Algorithm, Arriving, Downloaded};
use packhouse_wire::body::Body;

use crate::prepared_response::PreparedResponse;
use crate::repository_request::RepositoryRequest;

/// Counts the response if it sends a file from its first byte. Does not count responses to HEAD,
/// ranges that begin later, errors and 304.
pub(crate) fn count(request: &RepositoryRequest<'_>, prepared: &PreparedResponse, response: &Response<Body>) {
    let Some(file) = prepared.file.filter(|_| request.parts.method == Method::GET) else { return };
    let begins = match response.status() {
        StatusCode::OK => true,
        // The response has no range yet: the client will request the same range from the other
        // address.
        StatusCode::TEMPORARY_REDIRECT => {
            let range = request.parts.headers.get(RANGE).map(http::HeaderValue::as_bytes);
            range.is_none_or(|range| range.starts_with(b"bytes=0-"))
        }
        StatusCode::PARTIAL_CONTENT => {
            let range = response.headers().get(CONTENT_RANGE).map(http::HeaderValue::as_bytes);
            range.is_some_and(|range| range.starts_with(b"bytes 0-"))
        }
        _ => false,
    };
    let Some(repository) = file.repository.or_else(|| request.found().map(|row| row.id)) else { return };
    if begins {
        let path = request.head.path.join("/").into_boxed_str();
        let of_version = request.description().counts_for_version(&path);
        let token = request.principal.facts.token.as_ref().map(|token| token.id);
        let token = token.filter(|_| of_version && request.app.config.fetch_days > 0);
        let download = Downloaded { repository, path, sha256: file.sha256, token };
        match &prepared.content {
            Content::Arriving(arriving) => count_arriving(request, arriving.clone(), download, of_version),
            _ => request.app.store.downloaded(download, of_version, request.now),
        }
    }
}

/// Counts a file that is still arriving from an upstream. Waits until the file is complete, because
/// an incomplete file does not belong to a version.
fn count_arriving(
    request: &RepositoryRequest<'_>,
    arriving: Arriving,
    download: Downloaded,
    of_version: bool,
) {
    let (store, now) = (request.app.store.clone(), request.now);
    tokio::spawn(async move {
        if let Ok(blob) = arriving.wait().await {
            let repository = blob.origin().unwrap_or(download.repository);
            let sha256 = blob.known(Algorithm::Sha256).and_then(|digest| digest.sha256());
            store.downloaded(Downloaded { repository, sha256, ..download }, of_version, now);
        }
    });
}
