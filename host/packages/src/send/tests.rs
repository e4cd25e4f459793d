//! Tests of the responses to different requests for the same content.

use super::*;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::poll_fn;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, ETAG, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, SERVER, SET_COOKIE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName};
use http_body::Body as _;
use packhouse_runtime::{Answer, Cut, Joined, JoinedPart, Reads};
use packhouse_store::Blob;
use std::pin::pin;

use crate::prepared_response::prepare;

fn inline(bytes: &'static [u8], kind: &'static str) -> Answer {
    Answer {
        status: 200,
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static(kind))],
        content: Content::Inline(Bytes::from_static(bytes)),
        modified: Some(784_111_777_500),
        cacheable: true,
        looked: Default::default(),
        committed: false,
        newest_found: Some(0),
        confidential: false,
        reads: Reads::default(),
        until: None,
        cache_uses: Vec::new(),
    }
}

fn sent(prepared: &PreparedResponse, method: &str, fields: &[(HeaderName, HeaderValue)]) -> Response<Body> {
    let headers: HeaderMap = fields.iter().cloned().collect();
    let reads = matches!(method, "GET" | "HEAD");
    let spill = packhouse_wire::spill::Spill::in_folder(std::path::Path::new("nowhere"));
    let response_request = ResponseRequest {
        head: method == "HEAD",
        reads,
        follows_redirects: true,
        headers: &headers,
        request_id: "r",
        connection: None,
        spill: &spill,
    };
    let encodings = Encodings::new(true);
    respond(prepared, &encodings, response_request)
        .now_or_never()
        .expect("content in memory is available at once")
        .unwrap()
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
async fn each_representation_has_its_own_tag() {
    let tag = async |bytes, kind| prepare(inline(bytes, kind), true).await.unwrap().headers[ETAG].clone();
    let one = tag(b"a", "text/plain").await;
    assert_eq!(one, tag(b"a", "text/plain").await);
    assert_ne!(one, tag(b"a", "text/html").await);
    assert_ne!(one, tag(b"b", "text/plain").await);
}

#[tokio::test]
async fn a_client_with_the_current_version_gets_304() {
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
    let other = sent(&prepared, "GET", &[range("bytes=1-2"), (IF_RANGE, HeaderValue::from_static("\"x\""))]);
    assert_eq!((other.status().as_u16(), length(&other)), (200, 5));
}

#[tokio::test]
async fn a_document_is_sent_in_the_coding_that_is_accepted() {
    let text: &'static [u8] = &[b'x'; 2000];
    let prepared = Encodings::new(true).offer(prepare(inline(text, "text/plain"), true).await.unwrap());
    let gzip = (ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let (get, head) = (
        sent(&prepared, "GET", std::slice::from_ref(&gzip)),
        sent(&prepared, "HEAD", std::slice::from_ref(&gzip)),
    );
    assert_eq!((get.status().as_u16(), length(&head)), (200, 0));
    assert_eq!(get.headers(), head.headers());
    assert_eq!(get.headers()[CONTENT_ENCODING], "gzip");
    assert_eq!(get.headers()[CONTENT_LENGTH], length(&get).to_string());
    assert!(length(&get) < 200 && !get.headers().contains_key(ACCEPT_RANGES));
    assert!(get.headers()[ETAG].to_str().unwrap().ends_with("-gzip\""));
    assert_eq!(get.headers()[VARY], "Accept, Authorization, Accept-Encoding");

    let plain = sent(&prepared, "GET", &[]);
    assert_eq!((length(&plain), plain.headers()[VARY].clone()), (2000, get.headers()[VARY].clone()));
    assert_ne!(plain.headers()[ETAG], get.headers()[ETAG]);
    let unchanged = sent(&prepared, "GET", &[gzip.clone(), (IF_NONE_MATCH, get.headers()[ETAG].clone())]);
    assert_eq!((unchanged.status().as_u16(), &unchanged.headers()[ETAG]), (304, &get.headers()[ETAG]));
    let range = (RANGE, HeaderValue::from_static("bytes=0-9"));
    let part = sent(&prepared, "GET", &[gzip.clone(), range]);
    assert_eq!((part.status().as_u16(), length(&part)), (206, 10));
    assert!(!part.headers().contains_key(CONTENT_ENCODING));
    let put = sent(&prepared, "PUT", &[gzip]);
    assert!(!put.headers().contains_key(CONTENT_ENCODING));
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
async fn shared_caches_must_not_store_private_responses() {
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
async fn vary_names_of_a_plugin_are_preserved() {
    let mut answer = inline(b"x", "text/plain");
    answer.headers.push((VARY, HeaderValue::from_static("accept, X-Own")));
    let prepared = prepare(answer, true).await.unwrap();
    let all: Vec<_> = prepared.headers.get_all(VARY).iter().collect();
    assert_eq!(all, ["Accept, Authorization, X-Own"]);
}

#[tokio::test]
async fn an_answer_to_head_may_state_the_length_of_what_a_get_would_bring() {
    let headers = vec![(CONTENT_LENGTH, HeaderValue::from_static("7"))];
    let answer = Answer {
        status: 200,
        headers,
        content: Content::None,
        modified: None,
        cacheable: false,
        looked: Default::default(),
        committed: false,
        newest_found: Some(0),
        confidential: false,
        reads: Reads::default(),
        until: None,
        cache_uses: Vec::new(),
    };
    let prepared = prepare(answer, true).await.unwrap();
    assert_eq!(sent(&prepared, "HEAD", &[]).headers()[CONTENT_LENGTH], "7");
    assert_eq!(sent(&prepared, "GET", &[]).headers()[CONTENT_LENGTH], "0");
    let kind = HeaderValue::from_static("text/xml");
    let headers =
        [prepared.headers.clone(), [(CONTENT_TYPE, kind)].into_iter().collect()].into_iter().flatten();
    let headers = headers.filter_map(|(name, value)| Some((name?, value))).collect();
    let document = Encodings::new(true).offer(PreparedResponse { headers, ..prepared });
    assert_eq!(document.headers[VARY], "Accept-Encoding");
    assert_eq!(sent(&document, "HEAD", &[]).headers()[CONTENT_LENGTH], "7");
    let gzip = (ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    assert!(!sent(&document, "HEAD", &[gzip]).headers().contains_key(CONTENT_LENGTH));
}

/// Returns a document in parts. A part with a note is cut from a cached piece that starts with the
/// note.
fn joined(parts: &[(Option<&str>, &str)]) -> Answer {
    let part = |(note, text): &(Option<&str>, &str)| {
        let of = |note: &str| Blob::from_bytes(format!("{note}{text}").into());
        let cut = note.map(|note| Cut { of: of(note), start: note.len() as u64 });
        JoinedPart { bytes: Bytes::from((*text).to_owned()), cut }
    };
    let content = Content::Joined(Joined::of(parts.iter().map(part).collect()));
    Answer { content, ..inline(b"", "text/plain") }
}

#[tokio::test]
async fn a_tag_of_parts_identifies_the_parts() {
    let tag = async |answer| prepare(answer, true).await.unwrap().headers[ETAG].clone();
    let one = tag(joined(&[(None, "a"), (Some("n"), "bc"), (None, "d")])).await;
    assert_eq!(one, tag(joined(&[(None, "a"), (Some("n"), "bc"), (None, "d")])).await);
    for other in [
        joined(&[(None, "b"), (Some("n"), "bc"), (None, "d")]),
        joined(&[(None, "a"), (Some("n"), "bd"), (None, "d")]),
        joined(&[(None, "a"), (Some("n"), "bc"), (None, "c")]),
        joined(&[(Some("n"), "bc"), (None, "a"), (None, "d")]),
        joined(&[(None, "a"), (Some("n"), "b"), (None, "cd")]),
        joined(&[(None, "a"), (Some("n"), "bc")]),
        inline(b"abcd", "text/plain"),
    ] {
        assert_ne!(one, tag(other).await);
    }
}

#[tokio::test]
async fn parts_are_sent_as_one_content() {
    let prepared = prepare(joined(&[(None, "ab"), (Some("note"), "cde"), (None, "f")]), true).await.unwrap();
    let range = |text: &'static str| vec![(RANGE, HeaderValue::from_static(text))];
    for (fields, status, expected) in [
        (vec![], 200, "abcdef"),
        (range("bytes=1-4"), 206, "bcde"),
        (range("bytes=2-2"), 206, "c"),
        (range("bytes=-1"), 206, "f"),
    ] {
        let response = sent(&prepared, "GET", &fields);
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[CONTENT_LENGTH], expected.len().to_string());
        assert_eq!(length(&response), expected.len() as u64);
        let mut body = pin!(response.into_body());
        let mut received = Vec::new();
        while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            received.extend(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(received, expected.as_bytes());
        assert!(body.is_end_stream() && body.size_hint().exact() == Some(0));
    }
    assert_eq!(length(&sent(&prepared, "HEAD", &[])), 0);
}
