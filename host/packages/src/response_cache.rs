//! The response cache. A plugin's answer to a read is a pure function of the request, the settings and the records that it read, so
//! it is served again without entering Wasm until one of those changes. Access is decided anew for each request: what is
//! kept is the intent with its answer, never a decision. Of the request counts what the plugin looked at: who makes up queries that it
//! never asks for gets what is kept.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use futures::StreamExt as _;
use packhouse_runtime::{Content, Intent, Looked, RequestHead};
use packhouse_store::{RepositoryId, RepositoryRow, StoreError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::asked_once::AskedOnce;
use crate::cache_meters::CacheMeters;
use crate::prepared_response::{PreparedResponse, size};
use crate::validity::Validity;

/// Bytes of what a plugin rendered: the index of a package with thousands of versions is what costs most to make.
const RENDERED_BYTES: u64 = 2 * 1024 * 1024;
/// Bytes of a stored file that is worth holding in memory; of a larger one the handle is kept.
const FILE_BYTES: u64 = 64 * 1024;
/// Bytes of what is looked at; a request with more is asked of the plugin each time.
const KEY_BYTES: usize = 4 * 1024;
/// Files that are held open, where there are as many descriptors as one could want.
#[cfg(test)]
const MANY_FILES: usize = 16 * 1024;
/// What an entry costs besides its key and content: a dozen headers with their values, the intent, handles, the cache's own
/// book-keeping. Measured: with less than this a full cache of small answers took twice the memory that it counted.
const ENTRY_BYTES: u64 = 3 * 1024;
/// The same of what says how far to look.
const FURTHER_BYTES: u64 = 256;

/// A response and what it was made of.
pub(crate) struct CacheEntry {
    /// How long it is valid.
    pub validity: Validity,
    /// The number of changes of advisories at which it was made: another made it anew.
    pub advisories: i64,
    /// What access is decided on.
    pub intent: Arc<Intent>,
    /// What is sent.
    pub response: Arc<PreparedResponse>,
    /// The shadow that it was compared with; 0 for none.
    pub compared: AtomicI64,
}

/// The plugin, the repository, and all that the plugin can see of a request. Requests that are equal up to where the plugin looked get
/// equal responses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CacheKey {
    bytes: Vec<u8>,
    /// Where what every response depends on ends.
    path_end: usize,
    /// Where the headers end, before the query.
    headers_end: usize,
}

impl CacheKey {
    /// With the number of the plugin, and the members that the caller may read: who may read others gets other responses, and does not displace these.
    /// None for a request whose response is never kept.
    pub(crate) fn of(
        plugin: u64,
        repository: RepositoryId,
        members: &[&RepositoryRow],
        head: &RequestHead,
    ) -> Option<Self> {
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return None;
        }
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&plugin.to_be_bytes());
        bytes.extend_from_slice(&repository.0.to_be_bytes());
        bytes.extend_from_slice(&(members.len() as u64).to_be_bytes());
        members.iter().for_each(|member| bytes.extend_from_slice(&member.id.0.to_be_bytes()));
        part(&mut bytes, &head.method);
        part(&mut bytes, head.claim.as_deref().unwrap_or_default());
        part(&mut bytes, &head.address);
        list(&mut bytes, head.path.len(), head.path.iter().map(String::as_str));
        let path_end = bytes.len();
        pairs(&mut bytes, &head.headers);
        let headers_end = bytes.len();
        pairs(&mut bytes, &head.query);
        (path_end <= KEY_BYTES).then_some(Self { bytes, path_end, headers_end })
    }

    /// Whether the request has a query.
    fn has_query(&self) -> bool {
        self.bytes.len() - self.headers_end > size_of::<u64>()
    }

    /// What a response depends on for which the plugin looked so far. No such key is the beginning of one that is another's.
    fn up_to(&self, looked: Looked) -> &[u8] {
        let end = match looked {
            Looked::AtPath => self.path_end,
            Looked::AtHeaders => self.headers_end,
            Looked::AtQuery => self.bytes.len(),
        };
        self.bytes.get(..end).unwrap_or(&self.bytes)
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

fn pairs(bytes: &mut Vec<u8>, pairs: &[(String, String)]) {
    let texts = pairs.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    list(bytes, pairs.len(), texts);
}

/// What lies under a key.
#[derive(Clone)]
enum Kept {
    Response(Arc<CacheEntry>),
    /// Under what all responses of a path depend on: how much further to look for each.
    Further(Looked),
}

/// The responses of all repositories, within one bound of memory.
pub(crate) struct ResponseCache {
    cache: Cache<Box<[u8]>, Kept, Weight>,
    /// Queries that were asked for once: what is made for one is kept from the second time on, since no end of them can be made up.
    asked_once: AskedOnce,
    /// Look-ups by what came of them.
    pub(crate) lookups: CacheMeters,
}

impl ResponseCache {
    /// An empty cache of at most `total` bytes: of contents as they are; what is kept of them compressed has a bound of its own. Of
    /// stored files that are not in memory it holds at most `files` open.
    pub(crate) fn new(total: u64, files: usize) -> Self {
        let items = usize::try_from(total / (2 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let weight = Weight { file: total / (files.max(1) as u64) };
        let cache = Cache::with_weighter(items, total, weight);
        Self { cache, asked_once: AskedOnce::default(), lookups: CacheMeters::new("responses") }
    }

    /// The entry for this request, which may hold no longer.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Arc<CacheEntry>> {
        let further = match self.cache.get(key.up_to(Looked::AtPath))? {
            Kept::Response(entry) => return Some(entry),
            Kept::Further(looked) => looked,
        };
        match self.cache.get(key.up_to(further))? {
            Kept::Response(entry) => Some(entry),
            Kept::Further(_) => None,
        }
    }

    /// Keeps a response if it is a success and of a size that is worth keeping: for every request that is equal as far as the plugin
    /// looked, or as it looked before for another of this path.
    pub(crate) fn insert(&self, key: &CacheKey, entry: CacheEntry) {
        let content = &entry.response.content;
        let worth = entry.response.is_ok() && (is_file(content) || size(content) <= RENDERED_BYTES);
        if !worth {
            return;
        }
        let path = key.up_to(Looked::AtPath);
        let mut looked = entry.intent.looked.max(entry.response.looked);
        if let Some(Kept::Further(known)) = self.cache.peek(path)
            && known >= looked
        {
            looked = known;
        } else if looked > Looked::AtPath {
            self.cache.insert(path.into(), Kept::Further(looked));
        }
        let whole = key.up_to(looked);
        let may_be_made_up = looked == Looked::AtQuery && key.has_query();
        if whole.len() <= KEY_BYTES && !(may_be_made_up && self.asked_once.is_first(whole)) {
            self.cache.insert(whole.into(), Kept::Response(Arc::new(entry)));
        }
    }
}

fn is_file(content: &Content) -> bool {
    matches!(content, Content::Blob(_))
}

/// The response with the bytes of a small file in memory, checked while they were read.
pub(crate) async fn in_memory(response: PreparedResponse) -> Result<PreparedResponse, StoreError> {
    let Content::Blob(blob) = &response.content else { return Ok(response) };
    let size = blob.size();
    if size > FILE_BYTES {
        return Ok(response);
    }
    if let Some(bytes) = blob.in_memory() {
        return Ok(PreparedResponse { content: Content::Inline(bytes), ..response });
    }
    let mut chunks = blob.stream(0..size);
    let first = chunks.next().await.transpose()?.unwrap_or_default();
    // What comes in one piece is what the store has in memory itself: held once, not twice.
    if first.len() as u64 == size {
        return Ok(PreparedResponse { content: Content::Inline(first), ..response });
    }
    let mut bytes = bytes::BytesMut::with_capacity(usize::try_from(size).unwrap_or_default());
    bytes.extend_from_slice(&first);
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk?);
    }
    Ok(PreparedResponse { content: Content::Inline(bytes.freeze()), ..response })
}

/// Bytes; a file that is held open weighs as much as its share of them.
#[derive(Clone)]
struct Weight {
    file: u64,
}

impl Weighter<Box<[u8]>, Kept> for Weight {
    fn weight(&self, key: &Box<[u8]>, kept: &Kept) -> u64 {
        let Kept::Response(entry) = kept else { return FURTHER_BYTES + key.len() as u64 };
        let content = match &entry.response.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Joined(joined) => joined.size(),
            Content::Blob(_) | Content::Arriving(_) => self.file,
            Content::None => 0,
        };
        let uses = size_of_val(&*entry.response.cache_uses);
        ENTRY_BYTES + key.len() as u64 + entry.validity.bytes() as u64 + uses as u64 + content
    }
}

#[cfg(test)]
pub(crate) mod tests;
