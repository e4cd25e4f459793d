//! Kept answers. A plugin's answer to a read is a pure function of the request, the settings and the records that it read, so
//! it is served again without entering Wasm until the repository changes. Access is decided anew for each request: what is
//! kept is the intent with its answer, never a verdict.

use std::sync::Arc;

use futures::StreamExt as _;
use packhouse_runtime::{Content, Intent, RequestHead};
use packhouse_store::{RepositoryId, RepositoryRow, StoreError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::send::{self, Prepared};

/// Bytes of all that is kept.
const TOTAL_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of what a plugin rendered: the index of a package with thousands of versions is what costs most to make.
const RENDERED_BYTES: u64 = 2 * 1024 * 1024;
/// Bytes of a stored file that is worth holding in memory; of a larger one the handle is kept.
const FILE_BYTES: u64 = 64 * 1024;
/// Bytes of a key; a request with a longer one is asked of the plugin each time.
const KEY_BYTES: usize = 4 * 1024;
/// Files that are held open, where there are as many descriptors as one could want.
#[cfg(test)]
const MANY_FILES: usize = 16 * 1024;
/// What an entry costs besides its key and content: headers, handles, the cache's own book-keeping.
const ENTRY_BYTES: u64 = 1024;

/// When an answer was made: it holds as long as these are the repository's, and those of its members. Also of members that were not
/// handed over: what they hold hides what others have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Revisions {
    records: u64,
    settings: u64,
    members: Box<[(RepositoryId, u64, u64)]>,
}

impl Revisions {
    /// As they were read with the credential, with all members, whoever may read them.
    pub(crate) fn of<'a>(
        repository: &RepositoryRow,
        members: impl IntoIterator<Item = &'a RepositoryRow>,
    ) -> Self {
        let of = |row: &RepositoryRow| (row.id, row.revision, row.settings_revision);
        Self {
            records: repository.revision,
            settings: repository.settings_revision,
            members: members.into_iter().map(of).collect(),
        }
    }
}

/// An answer and what was asked for it.
pub(crate) struct Kept {
    revisions: Revisions,
    /// What access is decided on.
    pub intent: Intent,
    /// What is sent.
    pub answer: Arc<Prepared>,
}

/// All that a plugin can see of a request, and the repository: equal keys get equal answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Key(Box<[u8]>);

impl Key {
    /// With the members that the caller may read: who may read others gets other answers, and does not displace these.
    /// None for a request whose answer is never kept.
    pub(crate) fn of(
        repository: RepositoryId,
        members: &[&RepositoryRow],
        head: &RequestHead,
    ) -> Option<Self> {
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return None;
        }
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&repository.0.to_be_bytes());
        bytes.extend_from_slice(&(members.len() as u64).to_be_bytes());
        members.iter().for_each(|member| bytes.extend_from_slice(&member.id.0.to_be_bytes()));
        part(&mut bytes, &head.method);
        part(&mut bytes, head.claim.as_deref().unwrap_or_default());
        part(&mut bytes, &head.address);
        list(&mut bytes, head.path.len(), head.path.iter().map(String::as_str));
        for pairs in [&head.query, &head.headers] {
            list(
                &mut bytes,
                pairs.len(),
                pairs.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]),
            );
        }
        (bytes.len() <= KEY_BYTES).then(|| Self(bytes.into_boxed_slice()))
    }
}

/// With its length in front, so that no two lists of parts look the same.
fn part(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn list<'a>(bytes: &mut Vec<u8>, count: usize, parts: impl Iterator<Item = &'a str>) {
    bytes.extend_from_slice(&(count as u64).to_be_bytes());
    parts.for_each(|text| part(bytes, text));
}

/// The answers of all repositories, within one bound of memory.
pub(crate) struct Answers {
    cache: Cache<Box<[u8]>, Arc<Kept>, Weight>,
}

impl Answers {
    /// Nothing is kept yet. Of stored files that are not in memory at most so many are held open.
    pub(crate) fn new(files: usize) -> Self {
        Self::within(TOTAL_BYTES, files)
    }

    fn within(total: u64, files: usize) -> Self {
        let items = usize::try_from(total / (4 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let weight = Weight { file: total / (files.max(1) as u64) };
        Self { cache: Cache::with_weighter(items, total, weight) }
    }

    /// The answer to this request, if it was made at these revisions.
    pub(crate) fn get(&self, key: &Key, revisions: &Revisions) -> Option<Arc<Kept>> {
        self.cache.get(&*key.0).filter(|kept| kept.revisions == *revisions)
    }

    /// Keeps an answer that may be kept, made at these revisions or later.
    pub(crate) fn keep(&self, key: Key, revisions: Revisions, intent: Intent, answer: Arc<Prepared>) {
        if answer.is_ok() && (is_file(answer.content()) || send::size(answer.content()) <= RENDERED_BYTES) {
            self.cache.insert(key.0, Arc::new(Kept { revisions, intent, answer }));
        }
    }
}

fn is_file(content: &Content) -> bool {
    matches!(content, Content::Blob(_))
}

/// The answer with the bytes of a small file in memory, checked while they were read.
pub(crate) async fn in_memory(answer: Prepared) -> Result<Prepared, StoreError> {
    let Content::Blob(blob) = answer.content() else { return Ok(answer) };
    let size = blob.size();
    if size > FILE_BYTES {
        return Ok(answer);
    }
    let mut bytes = bytes::BytesMut::new();
    let mut chunks = blob.stream(0..size);
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk?);
    }
    Ok(answer.with_bytes(bytes.freeze()))
}

/// Bytes; a file that is held open weighs as much as its share of them.
#[derive(Clone)]
struct Weight {
    file: u64,
}

impl Weighter<Box<[u8]>, Arc<Kept>> for Weight {
    fn weight(&self, key: &Box<[u8]>, kept: &Arc<Kept>) -> u64 {
        let content = match kept.answer.content() {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Blob(_) | Content::Arriving(_) => self.file,
            Content::None => 0,
        };
        ENTRY_BYTES + key.len() as u64 + content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use packhouse_runtime::{Action, Answer, BodyPlan};

    fn head(path: &[&str], accept: &str) -> RequestHead {
        RequestHead {
            method: "GET".to_owned(),
            path: path.iter().map(ToString::to_string).collect(),
            headers: vec![("accept".to_owned(), accept.to_owned())],
            ..RequestHead::default()
        }
    }

    fn key(path: &[&str], accept: &str) -> Key {
        Key::of(RepositoryId(1), &[], &head(path, accept)).unwrap()
    }

    fn intent() -> Intent {
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

    async fn answer(status: u16, bytes: usize) -> Arc<Prepared> {
        let content = Content::Inline(Bytes::from(vec![b'x'; bytes]));
        let answer = Answer { status, headers: Vec::new(), content, modified: None, keepable: true };
        Arc::new(send::prepare(answer, true).await.unwrap())
    }

    fn at(records: u64, settings: u64, member: u64) -> Revisions {
        Revisions { records, settings, members: Box::new([(RepositoryId(9), member, 0)]) }
    }

    #[test]
    fn keys_differ_when_a_plugin_could_tell_the_requests_apart() {
        let all = [
            key(&["a", "b"], "*/*"),
            key(&["ab"], "*/*"),
            key(&["a", "b", ""], "*/*"),
            key(&["a", "b"], "text/html"),
            Key::of(RepositoryId(2), &[], &head(&["a", "b"], "*/*")).unwrap(),
            Key::of(RepositoryId(1), &[], &RequestHead { method: "HEAD".into(), ..head(&["a", "b"], "*/*") })
                .unwrap(),
            Key::of(RepositoryId(1), &[], &RequestHead { address: "x".into(), ..head(&["a", "b"], "*/*") })
                .unwrap(),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(key(&["a"], "*/*"), key(&["a"], "*/*"));
        assert!(
            Key::of(RepositoryId(1), &[], &RequestHead { method: "PUT".into(), ..head(&["a"], "") })
                .is_none()
        );
        assert!(Key::of(RepositoryId(1), &[], &head(&["a".repeat(KEY_BYTES).as_str()], "")).is_none());
    }

    #[tokio::test]
    async fn an_answer_holds_until_something_is_changed() {
        let answers = Answers::new(MANY_FILES);
        answers.keep(key(&["a"], ""), at(3, 1, 1), intent(), answer(200, 10).await);
        assert!(answers.get(&key(&["a"], ""), &at(3, 1, 1)).is_some());
        assert!(answers.get(&key(&["b"], ""), &at(3, 1, 1)).is_none());
        assert!(answers.get(&key(&["a"], ""), &at(4, 1, 1)).is_none());
        assert!(answers.get(&key(&["a"], ""), &at(3, 2, 1)).is_none());
        assert!(answers.get(&key(&["a"], ""), &at(3, 1, 2)).is_none());
    }

    #[tokio::test]
    async fn what_is_large_or_no_success_is_not_kept() {
        let answers = Answers::new(MANY_FILES);
        answers.keep(
            key(&["large"], ""),
            at(3, 1, 1),
            intent(),
            answer(200, usize::try_from(RENDERED_BYTES).unwrap() + 1).await,
        );
        answers.keep(key(&["missing"], ""), at(3, 1, 1), intent(), answer(404, 10).await);
        assert!(answers.get(&key(&["large"], ""), &at(3, 1, 1)).is_none());
        assert!(answers.get(&key(&["missing"], ""), &at(3, 1, 1)).is_none());
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let answers = Answers::within(4 * 1024 * 1024, MANY_FILES);
        for number in 0..200 {
            let path = number.to_string();
            answers.keep(key(&[&path], ""), at(3, 1, 1), intent(), answer(200, 200 * 1024).await);
        }
        assert!(answers.cache.weight() <= 4 * 1024 * 1024);
    }
}
