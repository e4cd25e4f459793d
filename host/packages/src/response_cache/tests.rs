//! What is kept, for how long, and within which bounds.

use super::*;
use bytes::Bytes;
use packhouse_runtime::{Action, Answer, BodyPlan};

use crate::prepared_response::prepare;

fn head(path: &[&str], accept: &str) -> RequestHead {
    RequestHead {
        method: "GET".to_owned(),
        path: path.iter().map(ToString::to_string).collect(),
        headers: vec![("accept".to_owned(), accept.to_owned())],
        ..RequestHead::default()
    }
}

fn key(path: &[&str], accept: &str) -> CacheKey {
    CacheKey::of(RepositoryId(1), &[], &head(path, accept)).unwrap()
}

/// A read.
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
    }
}

/// A response with so many bytes that a plugin rendered.
pub(crate) async fn response(status: u16, bytes: usize) -> Arc<PreparedResponse> {
    let content = Content::Inline(Bytes::from(vec![b'x'; bytes]));
    let answer = Answer { status, headers: Vec::new(), content, modified: None, keepable: true, until: None };
    Arc::new(prepare(answer, true).await.unwrap())
}

fn entry(validity: Validity, response: Arc<PreparedResponse>) -> CacheEntry {
    CacheEntry { validity, intent: Arc::new(intent()), response }
}

fn at(records: u64, settings: u64, member: u64) -> Validity {
    Validity { records, settings, members: Box::new([(RepositoryId(9), member, 0)]) }
}

#[test]
fn keys_differ_when_a_plugin_could_tell_the_requests_apart() {
    let all = [
        key(&["a", "b"], "*/*"),
        key(&["ab"], "*/*"),
        key(&["a", "b", ""], "*/*"),
        key(&["a", "b"], "text/html"),
        CacheKey::of(RepositoryId(2), &[], &head(&["a", "b"], "*/*")).unwrap(),
        CacheKey::of(
            RepositoryId(1),
            &[],
            &RequestHead { method: "HEAD".into(), ..head(&["a", "b"], "*/*") },
        )
        .unwrap(),
        CacheKey::of(RepositoryId(1), &[], &RequestHead { address: "x".into(), ..head(&["a", "b"], "*/*") })
            .unwrap(),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all.iter().skip(at + 1).all(|other| other != one));
    }
    assert_eq!(key(&["a"], "*/*"), key(&["a"], "*/*"));
    assert!(
        CacheKey::of(RepositoryId(1), &[], &RequestHead { method: "PUT".into(), ..head(&["a"], "") })
            .is_none()
    );
    assert!(CacheKey::of(RepositoryId(1), &[], &head(&["a".repeat(KEY_BYTES).as_str()], "")).is_none());
}

#[tokio::test]
async fn a_response_is_valid_until_something_is_changed() {
    let cache = ResponseCache::new(MANY_FILES);
    cache.insert(key(&["a"], ""), entry(at(3, 1, 1), response(200, 10).await));
    assert!(cache.get(&key(&["a"], ""), &at(3, 1, 1)).is_some());
    assert!(cache.get(&key(&["b"], ""), &at(3, 1, 1)).is_none());
    assert!(cache.get(&key(&["a"], ""), &at(4, 1, 1)).is_none());
    assert!(cache.get(&key(&["a"], ""), &at(3, 2, 1)).is_none());
    assert!(cache.get(&key(&["a"], ""), &at(3, 1, 2)).is_none());
}

#[tokio::test]
async fn what_is_large_or_no_success_is_not_kept() {
    let cache = ResponseCache::new(MANY_FILES);
    let large = usize::try_from(RENDERED_BYTES).unwrap() + 1;
    cache.insert(key(&["large"], ""), entry(at(3, 1, 1), response(200, large).await));
    cache.insert(key(&["missing"], ""), entry(at(3, 1, 1), response(404, 10).await));
    assert!(cache.get(&key(&["large"], ""), &at(3, 1, 1)).is_none());
    assert!(cache.get(&key(&["missing"], ""), &at(3, 1, 1)).is_none());
}

#[tokio::test]
async fn memory_is_bounded() {
    let cache = ResponseCache::within(4 * 1024 * 1024, MANY_FILES);
    for number in 0..200 {
        let path = number.to_string();
        cache.insert(key(&[&path], ""), entry(at(3, 1, 1), response(200, 200 * 1024).await));
    }
    assert!(cache.cache.weight() <= 4 * 1024 * 1024);
}
