//! The step send: a prepared response for one request, with its conditions, its range, and for HEAD without content.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, LOCATION, RANGE,
};
use http::{HeaderValue, Response, StatusCode};
use packhouse_runtime::Content;
use packhouse_store::{SentAs, StoreError};

use crate::downloads;
use crate::encodings::Encodings;
use crate::error_response::HttpError;
use crate::prepared_response::{PreparedResponse, size};
use crate::repository_request::RepositoryRequest;
use crate::response_body::body;
use crate::response_request::ResponseRequest;
use crate::variant::{Selected, select};
use packhouse_wire::body::Body;
use packhouse_wire::conditional::{self, Validators};
use packhouse_wire::content_coding::{Coding, accepted};
use packhouse_wire::range::{self, Wanted};

/// Sends a response to the request. 503 if the storage of a file's first bytes cannot be reached,
/// 500 if they are missing or damaged.
pub(crate) async fn send(
    request: &RepositoryRequest<'_>,
    encodings: &Arc<Encodings>,
    prepared: &PreparedResponse,
) -> Result<Response<Body>, HttpError> {
    let follows = request.description().follows_redirects;
    let asked = ResponseRequest::of(request.parts, &request.head.request_id, &request.app.spill);
    let asked = ResponseRequest { follows_redirects: follows, ..asked };
    let response = respond(prepared, encodings, asked).await?;
    downloads::count(request, prepared, &response);
    Ok(response)
}

/// The response to one request: 304, 412 or 416 as its conditions and its range say, else the content, in a coding that it accepts, or
/// a part of it.
async fn respond(
    prepared: &PreparedResponse,
    encodings: &Arc<Encodings>,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    let Some(identity) = prepared.validators.as_ref().filter(|_| request.reads) else {
        return without_validators(prepared, request).await;
    };
    let coding = match select(prepared, identity, request.headers) {
        Selected::NotModified(validators) => return Ok(not_modified(prepared, validators)),
        Selected::Failed => return Ok(without_content(prepared, StatusCode::PRECONDITION_FAILED)),
        Selected::Send(coding) => coding,
    };
    let variant = prepared.variants.as_ref().and_then(|variants| variants.validators(coding));
    if let Some(validators) = variant
        && let Some(bytes) = encodings.of(prepared, coding).await
    {
        return coded(prepared, Variant { coding, validators, bytes }, request).await;
    }
    if let Some(elsewhere) = redirected(prepared, request).await? {
        return Ok(elsewhere);
    }
    ranged(prepared, identity, request).await
}

/// Where a client fetches a stored file itself, of which it then asks the same part; none where the file passes through this server.
async fn redirected(
    prepared: &PreparedResponse,
    request: ResponseRequest<'_>,
) -> Result<Option<Response<Body>>, StoreError> {
    let Content::Blob(blob) = &prepared.content else { return Ok(None) };
    if !request.follows_redirects || request.head {
        return Ok(None);
    }
    let header = |name| prepared.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let sent_as =
        SentAs { content_type: header(CONTENT_TYPE), content_disposition: header(CONTENT_DISPOSITION) };
    let Some(address) = blob.presigned(&sent_as).await? else { return Ok(None) };
    let location = HeaderValue::from_str(address.as_str());
    let location = location.map_err(|error| StoreError::Invalid(error.to_string()))?;
    // S3's own answer would be an error that no client of a format understands.
    if !blob.is_there().await? {
        return Err(StoreError::Corrupt("a blob that clients fetch from S3 is not there".to_owned()));
    }
    metrics::counter!("packhouse_blobs_redirected_total").increment(1);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    // Whoever has the address has the file for a while.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(Some(response))
}

/// The response as it is. A HEAD that the plugin answered without the content states the length that a GET would bring, and not that of
/// another variant.
async fn without_validators(
    prepared: &PreparedResponse,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    let mut response = whole(prepared, request).await?;
    if prepared.stands_for_variants && accepted(request.headers).next() != Some(Coding::Identity) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    Ok(response)
}

/// A content in a coding.
struct Variant<'a> {
    coding: Coding,
    validators: &'a Validators,
    bytes: Bytes,
}

async fn coded(
    prepared: &PreparedResponse,
    variant: Variant<'_>,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    let length = variant.bytes.len() as u64;
    let content = Content::Inline(variant.bytes);
    let mut response = Response::new(body(&content, 0..length, request).await?);
    let headers = response.headers_mut();
    headers.clone_from(&prepared.headers);
    // What a range would be a part of is another content.
    headers.remove(ACCEPT_RANGES);
    headers.insert(ETAG, variant.validators.etag.clone());
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(variant.coding.name()));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

async fn ranged(
    prepared: &PreparedResponse,
    validators: &Validators,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    let size = size(&prepared.content);
    let counts = conditional::range_counts(request.headers, validators);
    let field = request.headers.get(RANGE).filter(|_| counts);
    let part = match field.map_or(Wanted::Whole, |field| range::wanted(field.as_bytes(), size)) {
        Wanted::Whole => return whole(prepared, request).await,
        Wanted::Part(part) => part,
        Wanted::Unsatisfiable => {
            let mut response = without_content(prepared, StatusCode::RANGE_NOT_SATISFIABLE);
            content_range(&mut response, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let stated = format!("bytes {}-{}/{size}", part.start, part.end - 1);
    let mut response = filled(prepared, request, StatusCode::PARTIAL_CONTENT, part).await?;
    content_range(&mut response, &stated);
    Ok(response)
}

fn content_range(response: &mut Response<Body>, stated: &str) {
    response.headers_mut().extend(HeaderValue::from_str(stated).ok().map(|value| (CONTENT_RANGE, value)));
}

async fn whole(
    prepared: &PreparedResponse,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    filled(prepared, request, prepared.status, 0..size(&prepared.content)).await
}

async fn filled(
    prepared: &PreparedResponse,
    request: ResponseRequest<'_>,
    status: StatusCode,
    part: Range<u64>,
) -> Result<Response<Body>, StoreError> {
    let length = stated_length(&prepared.content, &part, request, status);
    let mut response = Response::new(body(&prepared.content, part, request).await?);
    *response.status_mut() = status;
    *response.headers_mut() = prepared.headers.clone();
    let headers = response.headers_mut();
    match length {
        // What is sent whole has its length in the prepared headers.
        Some(length) if length == size(&prepared.content) && states_own_length(prepared) => {}
        Some(length) => drop(headers.insert(CONTENT_LENGTH, HeaderValue::from(length))),
        None if matches!(prepared.content, Content::None) => {}
        None => drop(headers.remove(CONTENT_LENGTH)),
    }
    Ok(response)
}

/// Whether the prepared headers have the length of the content. Where there is none, what they have is what the plugin said of a GET.
fn states_own_length(prepared: &PreparedResponse) -> bool {
    !matches!(prepared.content, Content::None) && prepared.headers.contains_key(CONTENT_LENGTH)
}

/// The length that a response states. What still comes in has the length that the upstream announced, if it did; a HEAD without
/// content has what the plugin said that a GET would bring; 204 and 304 have none at all.
fn stated_length(
    content: &Content,
    part: &Range<u64>,
    request: ResponseRequest<'_>,
    status: StatusCode,
) -> Option<u64> {
    let without = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    match content {
        Content::Arriving(arriving) => arriving.declared(),
        Content::None if request.head => None,
        _ if without => None,
        _ => Some(part.end - part.start),
    }
}

/// 304, with the tag of the variant that the client has.
fn not_modified(prepared: &PreparedResponse, validators: &Validators) -> Response<Body> {
    let mut response = without_content(prepared, StatusCode::NOT_MODIFIED);
    response.headers_mut().insert(ETAG, validators.etag.clone());
    response
}

fn without_content(prepared: &PreparedResponse, status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.clone_from(&prepared.headers);
    for name in [CONTENT_TYPE, CONTENT_DISPOSITION, CONTENT_LENGTH] {
        headers.remove(name);
    }
    response
}

#[cfg(test)]
mod tests;
