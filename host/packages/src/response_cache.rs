//! The response cache. A plugin's answer to a read depends only on the request, the settings and
//! the records that the plugin read. Until one of these changes, the host serves the answer without
//! a call of the plugin. Access is decided for each request: an entry contains the intent and the
//! answer, but no access decision. The key contains only the parts of a request that the plugin
//! looked at. Invented queries that the plugin ignores therefore do not bypass the cache.

mod hashed_key;
mod level;

use std::sync::Arc;

use futures::StreamExt as _;
use packhouse_runtime::{Content, Looked, RequestHead};
use packhouse_store::{RepositoryId, RepositoryRow, StoreError};

use self::hashed_key::KeyHasher;
use self::level::Level;
use crate::admission_filter::AdmissionFilter;
use crate::cache_entry::CacheEntry;
use crate::cache_meters::CacheMeters;
use crate::packed_response::PackedEntry;
use crate::prepared_response::{PreparedResponse, size};
use crate::unknown_sites::UnknownSites;

/// Maximum size of a rendered document in the cache, in bytes. The index of a package with
/// thousands of versions takes longest to make, and should fit.
const RENDERED_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum size of a stored file that is cached in memory, in bytes. Entries of larger files
/// contain an open file.
const FILE_BYTES: u64 = 64 * 1024;
/// Maximum size of a key, in bytes. The plugin is called for each request with a longer key.
const KEY_BYTES: usize = 4 * 1024;
/// Maximum number of open files in tests, as if there were plenty of file descriptors.
#[cfg(test)]
const MANY_FILES: usize = 16 * 1024;
/// Memory of an entry in addition to its key and content, in bytes: a dozen headers, the intent,
/// handles, and the overhead of the cache. A file with four checksums was measured at 3.4 KiB
/// without this overhead.
const ENTRY_BYTES: u64 = 4 * 1024;
/// Memory of a packed entry in addition to its key and content, in bytes.
const PACKED_BYTES: u64 = 256;

/// Key of a request: the plugin, the repository, and everything that the plugin can see of the
/// request. Requests that are equal in the part that the plugin looked at get equal responses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CacheKey {
    bytes: Vec<u8>,
    /// End of the part on which every response depends.
    path_end: usize,
    /// End of the headers. The rest is the query.
    headers_end: usize,
}

impl CacheKey {
    /// Returns the key of a request, or `None` if its response is never cached. The key includes
    /// the plugin's number and the members that the caller may read. Callers with access to other
    /// members therefore get other entries, which do not displace these.
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

    fn has_query(&self) -> bool {
        // An empty query is encoded as a single 0.
        self.bytes.len() - self.headers_end > 1
    }

    /// Returns the key for responses whose plugin looked at the request up to `looked`. Such a key
    /// is never a prefix of another key.
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

/// Encodes a number as LEB128. The cache contains many keys, and most numbers in them are small.
fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a text after its length, so that different lists of parts have different encodings.
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

/// A cache entry, which may be stale.
pub(crate) enum Cached {
    /// An entry that includes its content.
    Whole(Arc<CacheEntry>),
    /// An entry without the bytes of its file.
    Packed(Arc<PackedEntry>),
}

/// The cached responses of all repositories, within one memory limit. A third of the memory is for
/// whole entries, the rest for packed ones. A response with a small file is stored in both forms.
/// If the whole entry is evicted, the packed entry remains, which takes a tenth of the memory.
pub(crate) struct ResponseCache {
    whole: Level<CacheEntry>,
    packed: Level<PackedEntry>,
    /// Hashes the keys of packed entries. Without hashing, such a key would be about as large as
    /// its entry.
    hasher: KeyHasher,
    /// Recently requested queries. The response to a query is cached from the second request on,
    /// because clients can invent any number of queries.
    admission_filter: AdmissionFilter,
    /// Sites that the server does not know, but for which it caches responses.
    pub(crate) unknown_sites: UnknownSites,
    pub(crate) lookups: CacheMeters,
}

impl ResponseCache {
    /// Creates an empty cache for at most `total` bytes of unencoded contents; compressed contents
    /// have their own limit. The cache keeps at most `files` stored files open.
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
            admission_filter: AdmissionFilter::default(),
            unknown_sites: UnknownSites::default(),
            lookups: CacheMeters::new("responses"),
        }
    }

    /// Returns the entry for this request.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Cached> {
        let whole = self.whole.get(key).map(Cached::Whole);
        whole.or_else(|| self.packed.get(&self.hasher.of(key)).map(Cached::Packed))
    }

    /// Caches a successful response of a suitable size. The entry is for all requests that are
    /// equal in the part that the plugin looked at. An earlier request of the same path may have
    /// enlarged this part.
    pub(crate) fn insert(&self, key: &CacheKey, entry: CacheEntry) {
        let content = &entry.response.content;
        let worth = entry.response.is_ok() && (is_file(content) || size(content) <= RENDERED_BYTES);
        if !worth {
            return;
        }
        let Some(looked) = self.cacheable_part(key, &entry) else { return };
        if let Some(packed) = PackedEntry::of(&entry) {
            let key = self.hasher.of(key);
            self.packed.record_looked(&key, looked);
            self.packed.insert(&key, looked, Arc::new(packed));
        }
        self.whole.insert(key, looked, Arc::new(entry));
    }

    /// Caches the unpacked form of a packed entry.
    pub(crate) fn insert_unpacked(&self, key: &CacheKey, entry: &Arc<CacheEntry>) {
        if let Some(looked) = self.cacheable_part(key, entry) {
            self.whole.insert(key, looked, Arc::clone(entry));
        }
    }

    /// Returns the part in which requests must be equal to share this entry. Returns `None` if the
    /// entry should not be cached.
    fn cacheable_part(&self, key: &CacheKey, entry: &CacheEntry) -> Option<Looked> {
        let looked = entry.intent.looked.max(entry.response.looked);
        let looked =
            self.whole.record_looked(key, looked.max(self.packed.recorded_looked(&self.hasher.of(key))));
        let may_be_invented = looked == Looked::AtQuery && key.has_query();
        let whole = key.up_to(looked);
        let is_first = || may_be_invented && self.admission_filter.is_first(whole);
        (whole.len() <= KEY_BYTES && !is_first()).then_some(looked)
    }
}

fn is_file(content: &Content) -> bool {
    matches!(content, Content::Blob(_))
}

/// Loads the bytes of a small file into memory. The store verifies the bytes while it reads them.
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
    // A single chunk shares its memory with the store's own cache, so the bytes are in memory only
    // once.
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

/// Returns the memory of an entry without its key, in bytes. For an open file, this includes an
/// equal share of the total.
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
