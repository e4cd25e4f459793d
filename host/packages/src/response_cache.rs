//! The response cache. A plugin's answer to a read is a pure function of the request, the settings and the records that it read, so
//! it is served again without entering Wasm until one of those changes. Access is decided anew for each request: what is
//! kept is the intent with its answer, never a decision. Of the request counts what the plugin looked at: who makes up queries that it
//! never asks for gets what is kept.

mod hashed_key;
mod level;

use std::sync::Arc;

use futures::StreamExt as _;
use packhouse_runtime::{Content, Looked, RequestHead};
use packhouse_store::{RepositoryId, RepositoryRow, StoreError};

use self::hashed_key::KeyHasher;
use self::level::Level;
use crate::asked_once::AskedOnce;
use crate::cache_entry::CacheEntry;
use crate::cache_meters::CacheMeters;
use crate::packed_response::PackedEntry;
use crate::prepared_response::{PreparedResponse, size};
use crate::unknown_sites::UnknownSites;

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
/// book-keeping. Measured: 3.4 KiB of a file with four checksums, without the book-keeping.
const ENTRY_BYTES: u64 = 4 * 1024;
/// The same of a packed entry.
const PACKED_BYTES: u64 = 256;

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
        number(&mut bytes, plugin);
        number(&mut bytes, repository.0.cast_unsigned());
        number(&mut bytes, members.len() as u64);
        members.iter().for_each(|member| number(&mut bytes, member.id.0.cast_unsigned()));
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
        // Without one a 0 stands there.
        self.bytes.len() - self.headers_end > 1
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

impl level::Keys for CacheKey {
    fn up_to(&self, looked: Looked) -> impl AsRef<[u8]> {
        self.up_to(looked)
    }
}

/// In as few bytes as it needs (LEB128): keys are kept in great number, and most numbers in them are small.
fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// With its length in front, so that no two lists of parts look the same.
fn part(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn list<'a>(bytes: &mut Vec<u8>, count: usize, parts: impl Iterator<Item = &'a str>) {
    number(bytes, count as u64);
    parts.for_each(|text| part(bytes, text));
}

fn pairs(bytes: &mut Vec<u8>, pairs: &[(String, String)]) {
    let texts = pairs.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    list(bytes, pairs.len(), texts);
}

/// What is kept for a request, which may hold no longer.
pub(crate) enum Cached {
    /// As it is sent.
    Whole(Arc<CacheEntry>),
    /// All but the bytes of its file.
    Packed(Arc<PackedEntry>),
}

/// The responses of all repositories, within one bound of memory: a third of it for responses as they are sent, the rest for packed ones.
/// Those of small files are kept in both forms, so that what gives way to others is found in the one that takes a tenth of the room.
pub(crate) struct ResponseCache {
    whole: Level<CacheEntry>,
    packed: Level<PackedEntry>,
    /// Of the keys of packed entries, which would be as large as some of what lies under them.
    hasher: KeyHasher,
    /// Queries that were asked for once: what is made for one is kept from the second time on, since no end of them can be made up.
    asked_once: AskedOnce,
    /// For which of the sites that the server does not know answers are kept.
    pub(crate) unknown_sites: UnknownSites,
    /// Look-ups by what came of them.
    pub(crate) lookups: CacheMeters,
}

impl ResponseCache {
    /// An empty cache of at most `total` bytes: of contents as they are; what is kept of them compressed has a bound of its own. Of
    /// stored files that are not in memory it holds at most `files` open.
    pub(crate) fn new(total: u64, files: usize) -> Self {
        let items = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let whole = total / 3;
        let (packed, file) = (total - whole, whole / (files.max(1) as u64));
        Self {
            whole: Level::new(items(whole / (2 * ENTRY_BYTES)), whole, move |entry| weight(entry, file)),
            packed: Level::new(items(packed / (2 * PACKED_BYTES)), packed, |entry: &PackedEntry| {
                PACKED_BYTES + entry.bytes() as u64
            }),
            hasher: KeyHasher::default(),
            asked_once: AskedOnce::default(),
            unknown_sites: UnknownSites::default(),
            lookups: CacheMeters::new("responses"),
        }
    }

    /// What there is for this request.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Cached> {
        let whole = self.whole.get(key).map(Cached::Whole);
        whole.or_else(|| self.packed.get(&self.hasher.of(key)).map(Cached::Packed))
    }

    /// Keeps a response if it is a success and of a size that is worth keeping: for every request that is equal as far as the plugin
    /// looked, or as it looked before for another of this path.
    pub(crate) fn insert(&self, key: &CacheKey, entry: CacheEntry) {
        let content = &entry.response.content;
        let worth = entry.response.is_ok() && (is_file(content) || size(content) <= RENDERED_BYTES);
        if !worth {
            return;
        }
        let Some(looked) = self.place(key, &entry) else { return };
        if let Some(packed) = PackedEntry::of(&entry) {
            let key = self.hasher.of(key);
            self.packed.look(&key, looked);
            self.packed.insert(&key, looked, Arc::new(packed));
        }
        self.whole.insert(key, looked, Arc::new(entry));
    }

    /// Keeps as it is sent what was found packed.
    pub(crate) fn insert_unpacked(&self, key: &CacheKey, entry: &Arc<CacheEntry>) {
        if let Some(looked) = self.place(key, entry) {
            self.whole.insert(key, looked, Arc::clone(entry));
        }
    }

    /// Up to where requests must be equal for this entry; none where it is not kept.
    fn place(&self, key: &CacheKey, entry: &CacheEntry) -> Option<Looked> {
        let looked = entry.intent.looked.max(entry.response.looked);
        let looked = self.whole.look(key, looked.max(self.packed.known(&self.hasher.of(key))));
        let may_be_made_up = looked == Looked::AtQuery && key.has_query();
        let whole = key.up_to(looked);
        let is_first = || may_be_made_up && self.asked_once.is_first(whole);
        (whole.len() <= KEY_BYTES && !is_first()).then_some(looked)
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

/// Bytes of an entry besides its key; a file that is held open weighs as much as its share of them.
fn weight(entry: &CacheEntry, file: u64) -> u64 {
    let content = match &entry.response.content {
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Joined(joined) => joined.size(),
        Content::Blob(_) | Content::Arriving(_) => file,
        Content::None => 0,
    };
    let uses = size_of_val(&*entry.response.cache_uses);
    ENTRY_BYTES + entry.validity.bytes() as u64 + uses as u64 + content
}

#[cfg(test)]
pub(crate) mod tests;
