//! A response that is complete but for the request that it is for: made once for an answer, sent to each request that the answer
//! is for, and kept in the response cache.

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

/// What caches on the way did (RFC 9211).
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// For what is served although its time is over, as its upstream gave nothing better.
const STALE: HeaderValue = HeaderValue::from_static("Packhouse; hit; detail=stale");

/// Bytes that are announced and still arrive are waited for up to this many: such a response has validators and ranges like any
/// other.
const AWAITED_BYTES: u64 = 256 * 1024;

/// See the module.
#[derive(Clone)]
pub(crate) struct PreparedResponse {
    /// The status, unless the request's conditions or ranges change it.
    pub status: StatusCode,
    /// All headers, except those that depend on the request. The length is that of the whole content; the request's id is still to be
    /// filled in.
    pub headers: HeaderMap,
    /// The content, of which a request may want a part or nothing.
    pub content: Content,
    /// What conditions and ranges are judged by; of a 200 alone.
    pub validators: Option<Validators>,
    /// The variants that may be sent in its place; none where only the content as it is may be.
    pub variants: Option<CodedVariants>,
    /// Whether it is of a document that it does not hold itself, of which a GET may bring a variant: that of a HEAD.
    pub stands_for_variants: bool,
    /// Whether secrets may stand in it.
    pub confidential: bool,
    /// Whether it is in the response cache.
    pub kept: bool,
    /// Whether the plugin used nothing for it whose changes the cache would miss.
    pub cacheable: bool,
    /// What of the request the plugin looked at for it.
    pub looked: Looked,
    /// What it was made of.
    pub reads: Reads,
    /// From when on it may be another because time has passed, in ms since 1970.
    pub until: Option<i64>,
    /// What it used of what proxies keep, which counts each time it is sent.
    pub cache_uses: Vec<CacheUse>,
    /// The stored file that its content is.
    pub file: Option<SentFile>,
}

impl PreparedResponse {
    /// Whether it is a 200.
    pub(crate) fn is_ok(&self) -> bool {
        self.status == StatusCode::OK
    }
}

/// Completes a plugin's answer. `private` says that a credential decided who may see it. `BrokenOff` if few bytes were still to
/// come from an upstream and did not.
pub(crate) async fn prepare(answer: Answer, private: bool) -> Result<PreparedResponse, StoreError> {
    let answer = Answer { content: awaited(answer.content).await?, ..answer };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = plugin_headers(answer.headers);
    // What a HEAD without content states is the length of what a GET would bring.
    if !matches!(answer.content, Content::None) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(size(&answer.content)));
    }
    // Of each request its own. What each response has stands here already: to copy the headers and then make room for more of them takes
    // longer than to copy them.
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
    // What still arrives is kept once it is stored.
    let cacheable = answer.keepable && !matches!(answer.content, Content::Arriving(_));
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
        kept: false,
        cacheable,
        looked: answer.looked,
        reads,
        until,
        cache_uses,
        file,
    })
}

/// Waits for content of few bytes that still comes in. Content that is complete by now becomes a stored file.
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

/// Bytes of a content.
pub(crate) fn size(content: &Content) -> u64 {
    match content {
        Content::None => 0,
        Content::Arriving(arriving) => arriving.declared().unwrap_or_default(),
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Joined(joined) => joined.size(),
        Content::Blob(blob) => Blob::size(blob),
    }
}
