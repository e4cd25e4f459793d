//! The part of a response that does not depend on the single request. The host prepares it once
//! from a plugin's answer, sends it for each matching request, and stores it in the response cache.

use std::time::{Duration, SystemTime};

use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, ETAG, LAST_MODIFIED, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use packhouse_runtime::{Answer, CacheUse, Content, Looked, Reads};
use packhouse_store::{Blob, StoreError};

use crate::REQUEST_ID;
use crate::coded_variants::CodedVariants;
use crate::response_headers::{cache_control, forbid_scripts, gathered, plugin_headers, validators, vary};
use crate::sent_file::SentFile;
use packhouse_wire::conditional::Validators;

/// The header in which caches report how they handled a response (RFC 9211).
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Value for expired content that the server sends because the upstream returned nothing better.
const STALE: HeaderValue = HeaderValue::from_static("Packhouse; hit; detail=stale");

/// Maximum declared size of arriving content for which the host waits, in bytes. Complete content
/// gives the response validators and ranges.
const AWAITED_BYTES: u64 = 256 * 1024;

/// The part of a response that does not depend on the single request.
#[derive(Clone)]
pub(crate) struct PreparedResponse {
    /// Status of the response, unless the request's conditions or range change it.
    pub status: StatusCode,
    /// All headers except the request-specific ones. `Content-Length` is that of the whole content,
    /// and the request id is still empty.
    pub headers: HeaderMap,
    /// The whole content. A response may contain all of it, a part of it, or none.
    pub content: Content,
    /// Validators for conditions and ranges. Only a response with status 200 has validators.
    pub validators: Option<Validators>,
    /// Compressed variants that the host may send instead of the content. `None` if it must send
    /// the content unencoded.
    pub variants: Option<CodedVariants>,
    /// True for a response without content to HEAD, if the response to GET may be a compressed
    /// variant.
    pub stands_for_variants: bool,
    /// True if the content may contain secrets.
    pub confidential: bool,
    /// True if the response cache contains this response.
    pub cached: bool,
    /// True if the response cache notices when anything changes that the plugin used.
    pub cacheable: bool,
    /// The part of the request on which the plugin's answer depends.
    pub looked: Looked,
    /// Records and settings from which the response was made.
    pub reads: Reads,
    /// Time at which the response may become stale, in ms since 1970.
    pub until: Option<i64>,
    /// Entries of the upstream cache that the response uses. Each time the response is sent, this
    /// is recorded as a use of these entries.
    pub cache_uses: Vec<CacheUse>,
    /// The stored file, if the content is exactly one stored file.
    pub file: Option<SentFile>,
}

impl PreparedResponse {
    pub(crate) fn is_ok(&self) -> bool {
        self.status == StatusCode::OK
    }
}

/// Completes a plugin's answer. With `private`, only some credentials may see the response. Fails
/// with `BrokenOff` if a small content was still arriving and the upstream did not complete it.
pub(crate) async fn prepare(answer: Answer, private: bool) -> Result<PreparedResponse, StoreError> {
    let answer = Answer { content: awaited(answer.content).await?, ..answer };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = plugin_headers(answer.headers);
    // If the plugin answers HEAD without content, it sets the length that GET would return.
    if !matches!(answer.content, Content::None) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(size(&answer.content)));
    }
    // The request id is a placeholder, which each request replaces. The host sets all headers here:
    // adding a header to a copy would reallocate the copy, which takes longer than copying.
    headers.insert(REQUEST_ID, HeaderValue::from_static(""));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if answer.cache_uses.iter().any(|used| used.stale) {
        headers.insert(CACHE_STATUS, STALE);
    }
    forbid_scripts(&mut headers, &answer.content);
    cache_control(&mut headers, status, private)?;
    let validators = match status {
        StatusCode::OK => validators(&headers, &answer.content, answer.modified).await?,
        _ => None,
    };
    if let Some(validators) = &validators {
        headers.insert(ETAG, validators.etag.clone());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        vary(&mut headers)?;
    }
    if let Some(modified) = validators.as_ref().and_then(|validators| validators.modified) {
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(modified));
        headers.extend(HeaderValue::from_str(&date).ok().map(|date| (LAST_MODIFIED, date)));
    }
    // The host caches arriving content only after it is stored.
    let cacheable = answer.cacheable && !matches!(answer.content, Content::Arriving(_));
    let headers = gathered(&headers);
    let Answer { content, reads, until, cache_uses, confidential, .. } = answer;
    let file = SentFile::of(&content);
    Ok(PreparedResponse {
        status,
        headers,
        content,
        validators,
        variants: None,
        stands_for_variants: false,
        confidential,
        cached: false,
        cacheable,
        looked: answer.looked,
        reads,
        until,
        cache_uses,
        file,
    })
}

/// Waits for arriving content if it is small. Returns complete content as a stored file.
async fn awaited(content: Content) -> Result<Content, StoreError> {
    match content {
        Content::Arriving(arriving) => match arriving.now() {
            Some(blob) => Ok(Content::Blob(blob)),
            None if arriving.declared().is_some_and(|length| length <= AWAITED_BYTES) => {
                arriving.wait().await.map(Content::Blob)
            }
            None => Ok(Content::Arriving(arriving)),
        },
        other => Ok(other),
    }
}

pub(crate) fn size(content: &Content) -> u64 {
    match content {
        Content::None => 0,
        Content::Arriving(arriving) => arriving.declared().unwrap_or_default(),
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Joined(joined) => joined.size(),
        Content::Blob(blob) => Blob::size(blob),
    }
}
