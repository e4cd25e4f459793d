//! Send: a plugin's answer as an HTTP response. Validators, ranges, HEAD and the headers that keep browsers from harm are made
//! here, once for all formats; `prepare` once for an answer, `respond` for each request that it answers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED, RANGE, SERVER, SET_COOKIE, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use packhouse_runtime::{Answer, Content};
use packhouse_store::{Arriving, Blob, StoreError};
use sha2::{Digest as _, Sha256};

use packhouse_wire::body::Body;
use packhouse_wire::conditional::{self, Outcome, Validators};
use packhouse_wire::connection::{ConnectionState, Hold};
use packhouse_wire::range::{self, Wanted};

/// What a client published runs nowhere.
const POLICY_PUBLISHED: HeaderValue = HeaderValue::from_static("sandbox");
/// What a plugin rendered may have its own styles, and links.
const POLICY_RENDERED: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// An answer with all that does not depend on the request that it is for.
#[derive(Clone)]
pub(crate) struct Prepared {
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
    /// Of a 200 alone.
    validators: Option<Validators>,
}

impl Prepared {
    /// Whether it is a 200.
    pub(crate) fn is_ok(&self) -> bool {
        self.status == StatusCode::OK
    }

    /// Its content.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The same with its content in memory.
    pub(crate) fn with_bytes(self, bytes: Bytes) -> Self {
        Self { content: Content::Inline(bytes), ..self }
    }
}

/// Bytes that are announced and still arrive are waited for up to this many: such an answer has validators and ranges like any
/// other.
const AWAITED_BYTES: u64 = 256 * 1024;

/// Completes a plugin's answer. `private` where a credential decided that it may be seen. `BrokenOff` where few bytes were still
/// to come and did not.
pub(crate) async fn prepare(answer: Answer, private: bool) -> Result<Prepared, StoreError> {
    let answer = Answer { content: awaited(answer.content).await?, ..answer };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = plugin_headers(answer.headers);
    // What a HEAD without content states is the length of what a GET would bring.
    if !matches!(answer.content, Content::None) {
        headers.remove(CONTENT_LENGTH);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    harmless(&mut headers, &answer.content);
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
    Ok(Prepared { status, headers, content: answer.content, validators })
}

/// Content that is all there by now, or soon is, as what it then is.
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

/// What the plugin said, without what is the host's to say.
fn plugin_headers(own: Vec<(HeaderName, HeaderValue)>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(own.len() + 10);
    let kept = own
        .into_iter()
        .filter(|(name, _)| ![DATE, SERVER, SET_COOKIE, WWW_AUTHENTICATE, ETAG].contains(name));
    for (name, value) in kept {
        headers.append(name, value);
    }
    headers
}

/// A page that a client published must not run on this host's origin, nor be shown as a page at all.
fn harmless(headers: &mut HeaderMap, content: &Content) {
    let published = matches!(content, Content::Blob(_) | Content::Arriving(_));
    let policy = if published { POLICY_PUBLISHED } else { POLICY_RENDERED };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    let page = headers.get(CONTENT_TYPE).is_some_and(|kind| is_page(kind.as_bytes()));
    if published && page && !headers.contains_key(CONTENT_DISPOSITION) {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
}

/// Whether browsers render it with scripts: HTML, SVG and anything of XML.
fn is_page(content_type: &[u8]) -> bool {
    let kind =
        content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    kind.ends_with(b"html") || kind.ends_with(b"xml") || kind.starts_with(b"image/svg")
}

fn cache_control(headers: &mut HeaderMap, status: StatusCode, private: bool) -> Result<(), StoreError> {
    let own = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let value = match (own, private) {
        (None, _) if status != StatusCode::OK => "no-store".to_owned(),
        (None, true) => "private, no-cache".to_owned(),
        (None, false) => "no-cache".to_owned(),
        (Some(own), true) if !own.contains("private") && !own.contains("no-store") => {
            format!("private, {}", own.replace("public, ", ""))
        }
        (Some(own), _) => own.to_owned(),
    };
    let value = HeaderValue::from_str(&value).map_err(|error| StoreError::Invalid(error.to_string()))?;
    headers.insert(CACHE_CONTROL, value);
    Ok(())
}

/// What a plugin says that an answer depends on, and the two that may change it in any format.
fn vary(headers: &mut HeaderMap) -> Result<(), StoreError> {
    let mut names = "Accept, Authorization".to_owned();
    for line in headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok()) {
        for name in line.split(',').map(str::trim) {
            if !["", "accept", "authorization"].contains(&name.to_ascii_lowercase().as_str()) {
                names = format!("{names}, {name}");
            }
        }
    }
    let value = HeaderValue::from_str(&names).map_err(|error| StoreError::Invalid(error.to_string()))?;
    headers.insert(VARY, value);
    Ok(())
}

async fn validators(
    headers: &HeaderMap,
    content: &Content,
    modified: Option<u64>,
) -> Result<Option<Validators>, StoreError> {
    let tag = match content {
        // What still arrives has no digest yet.
        Content::None | Content::Arriving(_) => return Ok(None),
        Content::Inline(bytes) => representation(headers, &Sha256::digest(bytes)),
        Content::Blob(blob) => blob.sha256().await?.to_string(),
    };
    let etag = HeaderValue::from_str(&format!("\"{tag}\""))
        .map_err(|error| StoreError::Invalid(error.to_string()))?;
    Ok(Some(Validators { etag, modified: modified.map(|ms| ms / 1000) }))
}

/// Of what a plugin rendered: one tag for the same bytes under the same type and coding, another for every other
/// representation. A stored file has one representation, and its digest is its tag.
fn representation(headers: &HeaderMap, digest: &[u8]) -> String {
    let mut hash = Sha256::new();
    for name in [CONTENT_TYPE, http::header::CONTENT_ENCODING] {
        hash.update(headers.get(name).map_or(&b""[..], HeaderValue::as_bytes));
        hash.update([0]);
    }
    hash.update(digest);
    hex::encode(hash.finalize().get(..16).unwrap_or_default())
}

/// What of a request decides how an answer is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Whether it is a HEAD.
    pub head: bool,
    /// Whether it is a GET or a HEAD: others have neither conditions nor ranges here.
    pub reads: bool,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its id.
    pub request_id: &'a str,
    /// The connection that it shares with others, whose answers together may hold so much memory; none for one that has it for itself.
    pub connection: Option<&'a Arc<ConnectionState>>,
}

impl Asked<'_> {
    /// What an answer of so many bytes that are read in pieces may hold.
    fn hold_pieces(&self, length: u64) -> Option<Hold> {
        self.connection.map(|connection| connection.hold_pieces(length, PIECE))
    }

    /// What an answer of these bytes holds.
    fn hold(&self, bytes: &Bytes) -> Option<Hold> {
        self.connection.map(|connection| connection.hold(bytes.len()))
    }
}

/// Bytes of the pieces in which a stored file is read where nothing else is said.
const PIECE: usize = 256 * 1024;

fn piece(hold: Option<&Hold>) -> usize {
    hold.and_then(Hold::piece).unwrap_or(PIECE)
}

/// The response to one request, with the first bytes of a stored file at hand: an error when they cannot be read, for which there
/// is still time before the head is sent.
pub(crate) async fn respond(prepared: &Prepared, asked: Asked<'_>) -> Result<Response<Body>, StoreError> {
    let Some(validators) = prepared.validators.as_ref().filter(|_| asked.reads) else {
        return whole(prepared, asked).await;
    };
    match conditional::judge(asked.headers, validators) {
        Outcome::NotModified => Ok(without_content(prepared, StatusCode::NOT_MODIFIED)),
        Outcome::Failed => Ok(without_content(prepared, StatusCode::PRECONDITION_FAILED)),
        Outcome::Send => ranged(prepared, validators, asked).await,
    }
}

async fn ranged(
    prepared: &Prepared,
    validators: &Validators,
    asked: Asked<'_>,
) -> Result<Response<Body>, StoreError> {
    let size = size(&prepared.content);
    let field = asked.headers.get(RANGE).filter(|_| conditional::range_counts(asked.headers, validators));
    let part = match field.map_or(Wanted::Whole, |field| range::wanted(field.as_bytes(), size)) {
        Wanted::Whole => return whole(prepared, asked).await,
        Wanted::Part(part) => part,
        Wanted::Unsatisfiable => {
            let mut response = without_content(prepared, StatusCode::RANGE_NOT_SATISFIABLE);
            content_range(&mut response, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let length = part.end - part.start;
    let stated = format!("bytes {}-{}/{size}", part.start, part.end - 1);
    let mut response = filled(prepared, asked, StatusCode::PARTIAL_CONTENT, part, length).await?;
    content_range(&mut response, &stated);
    Ok(response)
}

fn content_range(response: &mut Response<Body>, stated: &str) {
    response.headers_mut().extend(HeaderValue::from_str(stated).ok().map(|value| (CONTENT_RANGE, value)));
}

async fn whole(prepared: &Prepared, asked: Asked<'_>) -> Result<Response<Body>, StoreError> {
    if let Content::Arriving(arriving) = &prepared.content {
        return Ok(as_it_comes(prepared, arriving, asked));
    }
    let size = size(&prepared.content);
    filled(prepared, asked, prepared.status, 0..size, size).await
}

/// Bytes that still arrive: of a length that the upstream announced, or of none.
fn as_it_comes(prepared: &Prepared, arriving: &Arriving, asked: Asked<'_>) -> Response<Body> {
    let length = arriving.declared();
    let body = match asked.head {
        true => Body::empty(),
        false => arriving_body(arriving, asked),
    };
    let mut response = Response::new(body);
    *response.status_mut() = prepared.status;
    *response.headers_mut() = prepared.headers.clone();
    response.headers_mut().extend(length.map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
    response
}

fn arriving_body(arriving: &Arriving, asked: Asked<'_>) -> Body {
    let hold = asked.hold_pieces(arriving.declared().unwrap_or(u64::MAX));
    let bytes = arriving.stream_in(piece(hold.as_ref()));
    Body::arriving(bytes, arriving.declared(), asked.request_id).holding(hold)
}

async fn filled(
    prepared: &Prepared,
    asked: Asked<'_>,
    status: StatusCode,
    part: std::ops::Range<u64>,
    length: u64,
) -> Result<Response<Body>, StoreError> {
    let body = match &prepared.content {
        _ if asked.head => Body::empty(),
        Content::None => Body::empty(),
        Content::Arriving(arriving) => arriving_body(arriving, asked),
        Content::Inline(bytes) => {
            let bytes = cut(bytes, part);
            let hold = asked.hold(&bytes);
            Body::full(bytes).holding(hold)
        }
        Content::Blob(blob) => {
            let hold = asked.hold_pieces(length);
            let bytes = blob.stream_in(part, piece(hold.as_ref())).begun().await?;
            Body::stream(bytes, length, asked.request_id).holding(hold)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = prepared.headers.clone();
    let states_length =
        !(asked.head && matches!(prepared.content, Content::None)) && may_have_content(status);
    if states_length {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(response)
}

/// 204 and 304 have no length at all.
fn may_have_content(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}

fn without_content(prepared: &Prepared, status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.clone_from(&prepared.headers);
    for name in [CONTENT_TYPE, CONTENT_DISPOSITION, CONTENT_LENGTH] {
        headers.remove(name);
    }
    response
}

fn cut(bytes: &Bytes, part: std::ops::Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(at(part.start)..at(part.end))
}

/// Bytes of a content.
pub(crate) fn size(content: &Content) -> u64 {
    match content {
        Content::None => 0,
        Content::Arriving(arriving) => arriving.declared().unwrap_or_default(),
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Blob(blob) => Blob::size(blob),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use http::header::{CACHE_CONTROL, IF_NONE_MATCH, IF_RANGE};
    use http_body::Body as _;

    fn inline(bytes: &'static [u8], kind: &'static str) -> Answer {
        Answer {
            status: 200,
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static(kind))],
            content: Content::Inline(Bytes::from_static(bytes)),
            modified: Some(784_111_777_500),
            keepable: true,
        }
    }

    fn sent(prepared: &Prepared, method: &str, fields: &[(HeaderName, HeaderValue)]) -> Response<Body> {
        let headers: HeaderMap = fields.iter().cloned().collect();
        let reads = matches!(method, "GET" | "HEAD");
        let asked =
            Asked { head: method == "HEAD", reads, headers: &headers, request_id: "r", connection: None };
        respond(prepared, asked).now_or_never().expect("what is in memory is not waited for").unwrap()
    }

    fn length(response: &Response<Body>) -> u64 {
        response.body().size_hint().exact().unwrap()
    }

    #[tokio::test]
    async fn a_head_is_a_get_without_its_content() {
        let prepared = prepare(inline(b"hello", "text/plain"), true).await.unwrap();
        let (get, head) = (sent(&prepared, "GET", &[]), sent(&prepared, "HEAD", &[]));
        assert_eq!((length(&get), length(&head)), (5, 0));
        assert_eq!(get.headers(), head.headers());
        assert_eq!(get.headers()[CONTENT_LENGTH], "5");
        assert_eq!(get.headers()[LAST_MODIFIED], "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(get.headers()[CACHE_CONTROL], "private, no-cache");
        assert_eq!(get.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    }

    #[tokio::test]
    async fn a_tag_is_one_representations_alone() {
        let tag = async |bytes, kind| prepare(inline(bytes, kind), true).await.unwrap().headers[ETAG].clone();
        let one = tag(b"a", "text/plain").await;
        assert_eq!(one, tag(b"a", "text/plain").await);
        assert_ne!(one, tag(b"a", "text/html").await);
        assert_ne!(one, tag(b"b", "text/plain").await);
    }

    #[tokio::test]
    async fn who_has_it_already_gets_a_304_without_content() {
        let prepared = prepare(inline(b"hello", "text/plain"), true).await.unwrap();
        let response = sent(&prepared, "GET", &[(IF_NONE_MATCH, prepared.headers[ETAG].clone())]);
        assert_eq!((response.status().as_u16(), length(&response)), (304, 0));
        assert!(response.headers().contains_key(ETAG) && !response.headers().contains_key(CONTENT_LENGTH));
        let put = sent(&prepared, "PUT", &[(IF_NONE_MATCH, prepared.headers[ETAG].clone())]);
        assert_eq!(put.status(), 200);
    }

    #[tokio::test]
    async fn ranges_are_parts_of_the_content() {
        let prepared = prepare(inline(b"hello", "text/plain"), true).await.unwrap();
        let range = |text: &'static str| (RANGE, HeaderValue::from_static(text));
        let part = sent(&prepared, "GET", &[range("bytes=1-2")]);
        assert_eq!((part.status().as_u16(), length(&part)), (206, 2));
        assert_eq!(part.headers()[CONTENT_RANGE], "bytes 1-2/5");
        let beyond = sent(&prepared, "GET", &[range("bytes=5-")]);
        assert_eq!(beyond.status(), 416);
        assert_eq!(beyond.headers()[CONTENT_RANGE], "bytes */5");
        let other =
            sent(&prepared, "GET", &[range("bytes=1-2"), (IF_RANGE, HeaderValue::from_static("\"x\""))]);
        assert_eq!((other.status().as_u16(), length(&other)), (200, 5));
    }

    #[tokio::test]
    async fn the_hosts_own_fields_are_not_a_plugins_to_set() {
        let mut answer = inline(b"x", "text/plain");
        for (name, value) in [(SET_COOKIE, "a=b"), (SERVER, "x"), (ETAG, "\"x\""), (CONTENT_LENGTH, "9")] {
            answer.headers.push((name, HeaderValue::from_static(value)));
        }
        let prepared = prepare(answer, true).await.unwrap();
        let response = sent(&prepared, "GET", &[]);
        assert!(!response.headers().contains_key(SET_COOKIE) && !response.headers().contains_key(SERVER));
        assert_ne!(response.headers()[ETAG], "\"x\"");
        assert_eq!(response.headers()[CONTENT_LENGTH], "1");
    }

    #[tokio::test]
    async fn caches_in_between_keep_nothing_that_a_credential_decided() {
        for (own, private, expected) in [
            ("max-age=600", true, "private, max-age=600"),
            ("public, max-age=600, immutable", true, "private, max-age=600, immutable"),
            ("public, max-age=600", false, "public, max-age=600"),
            ("no-store", true, "no-store"),
        ] {
            let mut answer = inline(b"x", "text/plain");
            answer.headers.push((CACHE_CONTROL, HeaderValue::from_static(own)));
            assert_eq!(prepare(answer, private).await.unwrap().headers[CACHE_CONTROL], expected);
        }
    }

    #[tokio::test]
    async fn what_a_plugin_varies_by_is_kept() {
        let mut answer = inline(b"x", "text/plain");
        answer.headers.push((VARY, HeaderValue::from_static("accept, X-Own")));
        let prepared = prepare(answer, true).await.unwrap();
        let all: Vec<_> = prepared.headers.get_all(VARY).iter().collect();
        assert_eq!(all, ["Accept, Authorization, X-Own"]);
    }

    #[test]
    fn pages_are_told_from_files() {
        for kind in [
            "text/html; charset=utf-8",
            "image/svg+xml",
            "application/xml",
            "TEXT/XML",
            "application/xhtml+xml",
        ] {
            assert!(is_page(kind.as_bytes()), "{kind}");
        }
        for kind in ["application/java-archive", "text/plain", "application/json", "image/png"] {
            assert!(!is_page(kind.as_bytes()), "{kind}");
        }
    }

    #[tokio::test]
    async fn an_answer_to_head_may_state_the_length_of_what_a_get_would_bring() {
        let headers = vec![(CONTENT_LENGTH, HeaderValue::from_static("7"))];
        let answer = Answer { status: 200, headers, content: Content::None, modified: None, keepable: false };
        let prepared = prepare(answer, true).await.unwrap();
        assert_eq!(sent(&prepared, "HEAD", &[]).headers()[CONTENT_LENGTH], "7");
        assert_eq!(sent(&prepared, "GET", &[]).headers()[CONTENT_LENGTH], "0");
    }
}
