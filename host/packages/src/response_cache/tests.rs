//! Tests of the response cache: which responses are cached, for how long and within which bounds.

use super::*;
use bytes::Bytes;
use packhouse_runtime::{Action, Answer, BodyPlan, Intent, Looked, Reads};

use crate::prepared_response::prepare;
use crate::validity::Validity;

const TOTAL_BYTES: u64 = 48 * 1024 * 1024;

fn head(path: &[&str], accept: &str) -> RequestHead {
    RequestHead {
        method: "GET".to_owned(),
        path: path.iter().map(ToString::to_string).collect(),
        headers: vec![("accept".to_owned(), accept.to_owned())],
        ..RequestHead::default()
    }
}

fn key(path: &[&str], accept: &str) -> CacheKey {
    CacheKey::of(1, RepositoryId(1), &[], &head(path, accept)).unwrap()
}

/// Returns the intent of a simple read.
pub(crate) fn intent() -> Intent {
    Intent {
        action: Action::Read,
        subject: None,
        body: BodyPlan::None,
        limit: None,
        digests: Vec::new(),
        also_read: Vec::new(),
        check: false,
        for_publish: false,
        packages: Vec::new(),
        many_packages: false,
        for_caller: false,
        looked: Looked::AtPath,
    }
}

/// Returns a rendered response with this many bytes.
pub(crate) async fn response(status: u16, bytes: usize) -> Arc<PreparedResponse> {
    let content = Content::Inline(Bytes::from(vec![b'x'; bytes]));
    let answer = Answer {
        status,
        headers: Vec::new(),
        content,
        modified: None,
        cacheable: true,
        looked: Default::default(),
        committed: false,
        newest_found: Some(0),
        confidential: false,
        reads: Reads::default(),
        until: None,
        cache_uses: Vec::new(),
    };
    Arc::new(prepare(answer, true).await.unwrap())
}

fn entry(response: Arc<PreparedResponse>) -> CacheEntry {
    CacheEntry { validity: Validity::of_settings(1), advisories: 0, intent: Arc::new(intent()), response }
}

#[test]
fn keys_differ_when_a_plugin_could_tell_the_requests_apart() {
    let all = [
        key(&["a", "b"], "*/*"),
        key(&["ab"], "*/*"),
        key(&["a", "b", ""], "*/*"),
        key(&["a", "b"], "text/html"),
        CacheKey::of(1, RepositoryId(2), &[], &head(&["a", "b"], "*/*")).unwrap(),
        CacheKey::of(2, RepositoryId(1), &[], &head(&["a", "b"], "*/*")).unwrap(),
        CacheKey::of(
            1,
            RepositoryId(1),
            &[],
            &RequestHead { method: "HEAD".into(), ..head(&["a", "b"], "*/*") },
        )
        .unwrap(),
        CacheKey::of(
            1,
            RepositoryId(1),
            &[],
            &RequestHead { address: "x".into(), ..head(&["a", "b"], "*/*") },
        )
        .unwrap(),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all.iter().skip(at + 1).all(|other| other != one));
    }
    assert_eq!(key(&["a"], "*/*"), key(&["a"], "*/*"));
    assert!(
        CacheKey::of(1, RepositoryId(1), &[], &RequestHead { method: "PUT".into(), ..head(&["a"], "") })
            .is_none()
    );
    assert!(CacheKey::of(1, RepositoryId(1), &[], &head(&["a".repeat(KEY_BYTES).as_str()], "")).is_none());
}

#[tokio::test]
async fn a_response_is_found_by_its_request() {
    let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
    cache.insert(&key(&["a"], ""), entry(response(200, 10).await));
    assert!(cache.get(&key(&["a"], "")).is_some());
    assert!(cache.get(&key(&["b"], "")).is_none());
}

/// Returns an entry whose plugin looked at the request up to `at`.
async fn looked(at: Looked) -> CacheEntry {
    let mut cached = entry(response(200, 10).await);
    cached.intent = Arc::new(Intent { looked: at, ..intent() });
    cached
}

fn request_key(accept: &str, query: &str) -> CacheKey {
    let query = vec![(query.to_owned(), String::new())];
    CacheKey::of(1, RepositoryId(1), &[], &RequestHead { query, ..head(&["a"], accept) }).unwrap()
}

/// Inserts an entry as for the second request of its key.
fn insert_again(cache: &ResponseCache, key: &CacheKey, entry: CacheEntry) {
    if entry.intent.looked == Looked::AtQuery || entry.response.looked == Looked::AtQuery {
        assert!(cache.admission_filter.is_first(key.up_to(Looked::AtQuery)));
    }
    cache.insert(key, entry);
}

#[tokio::test]
async fn invented_queries_take_no_memory() {
    let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
    for number in 0..1000 {
        cache.insert(&request_key("*/*", &number.to_string()), looked(Looked::AtQuery).await);
    }
    // The cache contains only the pointer.
    assert_eq!(cache.whole.len(), 1);
    // Use the last query: later queries may have displaced earlier ones from the filter.
    let again = request_key("*/*", "999");
    cache.insert(&again, looked(Looked::AtQuery).await);
    assert!(cache.get(&again).is_some(), "the second request is cached");
    let without = key(&["a"], "*/*");
    cache.insert(&without, looked(Looked::AtQuery).await);
    assert!(cache.get(&without).is_some(), "a missing query cannot be invented");
}

#[tokio::test]
async fn parts_that_the_plugin_ignored_do_not_belong_to_the_key() {
    for (at, found) in [
        (Looked::AtPath, [true, true, true]),
        (Looked::AtHeaders, [true, true, false]),
        (Looked::AtQuery, [true, false, false]),
    ] {
        let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
        insert_again(&cache, &request_key("*/*", "1"), looked(at).await);
        let keys = [request_key("*/*", "1"), request_key("*/*", "2"), request_key("text/html", "1")];
        assert_eq!(keys.map(|key| cache.get(&key).is_some()), found, "{at:?}");
        assert!(cache.get(&key(&["b"], "*/*")).is_none(), "{at:?}");
    }
}

#[tokio::test]
async fn the_largest_part_looked_at_applies_to_the_whole_path() {
    let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
    cache.insert(&request_key("*/*", "1"), looked(Looked::AtPath).await);
    insert_again(&cache, &request_key("text/html", "1"), looked(Looked::AtQuery).await);
    assert!(cache.get(&request_key("*/*", "1")).is_none(), "a pointer replaced the entry under the path");
    cache.insert(&request_key("*/*", "1"), looked(Looked::AtHeaders).await);
    cache.insert(&request_key("*/*", "1"), looked(Looked::AtHeaders).await);
    assert!(cache.get(&request_key("*/*", "1")).is_some() && cache.get(&request_key("*/*", "2")).is_none());
    assert!(cache.get(&request_key("text/html", "1")).is_some());
}

#[tokio::test]
async fn parts_that_handle_looked_at_belong_to_the_key() {
    let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
    let mut cached = entry(response(200, 10).await);
    cached.response = Arc::new(PreparedResponse { looked: Looked::AtQuery, ..(*cached.response).clone() });
    insert_again(&cache, &request_key("*/*", "1"), cached);
    assert!(cache.get(&request_key("*/*", "1")).is_some() && cache.get(&request_key("*/*", "2")).is_none());
}

#[tokio::test]
async fn requests_with_too_long_keys_are_not_cached() {
    let long = "q".repeat(KEY_BYTES);
    for (at, is_cached) in [(Looked::AtPath, true), (Looked::AtHeaders, true), (Looked::AtQuery, false)] {
        let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
        cache.insert(&request_key("*/*", &long), looked(at).await);
        cache.insert(&request_key("*/*", &long), looked(at).await);
        assert_eq!(cache.get(&request_key("*/*", &long)).is_some(), is_cached, "{at:?}");
    }
}

#[tokio::test]
async fn large_and_failed_responses_are_not_cached() {
    let cache = ResponseCache::new(TOTAL_BYTES, MANY_FILES);
    let large = usize::try_from(RENDERED_BYTES).unwrap() + 1;
    cache.insert(&key(&["large"], ""), entry(response(200, large).await));
    cache.insert(&key(&["missing"], ""), entry(response(404, 10).await));
    assert!(cache.get(&key(&["large"], "")).is_none());
    assert!(cache.get(&key(&["missing"], "")).is_none());
}

#[tokio::test]
async fn a_cache_of_zero_bytes_stores_nothing() {
    let cache = ResponseCache::new(0, MANY_FILES);
    cache.insert(&key(&["a"], ""), entry(response(200, 10).await));
    assert!(cache.get(&key(&["a"], "")).is_none());
}

#[tokio::test]
async fn memory_is_bounded() {
    let cache = ResponseCache::new(4 * 1024 * 1024, MANY_FILES);
    for number in 0..200 {
        let path = number.to_string();
        cache.insert(&key(&[&path], ""), entry(response(200, 200 * 1024).await));
    }
    assert!(cache.whole.weight() + cache.packed.weight() <= 4 * 1024 * 1024);
}

/// A client that requests many files once each must not displace entries that other clients often
/// use.
#[tokio::test]
async fn a_crawler_of_one_repository_displaces_nothing_that_others_use() {
    let cache = ResponseCache::new(12 * 1024 * 1024, MANY_FILES);
    let of = |repository: i64, number: usize| {
        CacheKey::of(1, RepositoryId(repository), &[], &head(&[&number.to_string()], "")).unwrap()
    };
    let used: Vec<CacheKey> = (0..200).map(|number| of(1, number)).collect();
    for key in &used {
        cache.insert(key, entry(response(200, 4096).await));
        assert!(cache.get(key).is_some() && cache.get(key).is_some());
    }
    for number in 0..20_000 {
        cache.insert(&of(2, number), entry(response(200, 4096).await));
    }
    let left = used.iter().filter(|key| cache.get(key).is_some()).count();
    assert!(left >= 190, "{left} of 200 are left");
}
