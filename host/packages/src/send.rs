//! The step send: sends a prepared response to one request. The request's conditions, range and
//! method determine what is sent.

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
use packhouse_wire::range::{self, RequestedRange};

/// Sends a response to the request. Fails with 503 if the storage cannot be reached for a file's
/// first bytes, and with 500 if these bytes are missing or damaged.
pub(crate) async fn send(
    request: &RepositoryRequest<'_>,
    encodings: &Arc<Encodings>,
    prepared: &PreparedResponse,
) -> Result<Response<Body>, HttpError> {
    let follows = request.description().follows_redirects;
    let response_request = ResponseRequest::of(request.parts, &request.head.request_id, &request.app.spill);
    let response_request = ResponseRequest { follows_redirects: follows, ..response_request };
    let response = respond(prepared, encodings, response_request).await?;
    downloads::count(request, prepared, &response);
    Ok(response)
}

/// Returns the response to one request: 304, 412 or 416 if the request's conditions or range
/// require it. Otherwise the response contains the content in an accepted coding, or a part of the
/// content.
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
        return coded(prepared, CodedContent { coding, validators, bytes }, request).await;
    }
    if let Some(elsewhere) = redirected(prepared, request).await? {
        return Ok(elsewhere);
    }
    ranged(prepared, identity, request).await
}

/// Returns a redirect to S3 for a stored file, or `None` if this server sends the file. The client
/// repeats its range in the new request.
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
    // Check this here: no package client would understand the error that S3 itself returns.
    if !blob.is_there().await? {
        return Err(StoreError::Corrupt("a blob for a direct download is missing in S3".to_owned()));
    }
    metrics::counter!("packhouse_blobs_redirected_total").increment(1);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    // Do not let caches store the redirect: anyone with this address can download the file for a
    // while.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(Some(response))
}

/// Returns the response without regard to conditions and ranges. If the plugin answered HEAD
/// without content, the stated length is that of GET. The length is omitted if the response to GET
/// may be a compressed variant.
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

/// The content of a response in one coding.
struct CodedContent<'a> {
    coding: Coding,
    validators: &'a Validators,
    bytes: Bytes,
}

async fn coded(
    prepared: &PreparedResponse,
    variant: CodedContent<'_>,
    request: ResponseRequest<'_>,
) -> Result<Response<Body>, StoreError> {
    let length = variant.bytes.len() as u64;
    let content = Content::Inline(variant.bytes);
    let mut response = Response::new(body(&content, 0..length, request).await?);
    let headers = response.headers_mut();
    headers.clone_from(&prepared.headers);
    // A range would refer to the unencoded content, so do not offer ranges here.
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
    let part =
        match field.map_or(RequestedRange::Whole, |field| range::requested_range(field.as_bytes(), size)) {
            RequestedRange::Whole => return whole(prepared, request).await,
            RequestedRange::Part(part) => part,
            RequestedRange::Unsatisfiable => {
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
        // The prepared headers already state the length of the whole content.
        Some(length) if length == size(&prepared.content) && states_own_length(prepared) => {}
        Some(length) => drop(headers.insert(CONTENT_LENGTH, HeaderValue::from(length))),
        None if matches!(prepared.content, Content::None) => {}
        None => drop(headers.remove(CONTENT_LENGTH)),
    }
    Ok(response)
}

/// Reports whether the prepared headers state the length of the content. Without content, they
/// state the length that the plugin gave for GET.
fn states_own_length(prepared: &PreparedResponse) -> bool {
    !matches!(prepared.content, Content::None) && prepared.headers.contains_key(CONTENT_LENGTH)
}

/// Returns the length to state in a response. For arriving content, this is the length that the
/// upstream declared, if any. A HEAD without content returns `None` and keeps the length that the
/// plugin gave for GET. 204 and 304 have no length.
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

/// Returns a 304 with the tag of the variant that the client has.
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
