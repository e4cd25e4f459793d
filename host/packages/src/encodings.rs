//! Cache of compressed contents, so that the server compresses each content once. The key contains
//! the tag of the unencoded content, which identifies its bytes. All responses with the same bytes
//! share an entry. Examples are responses to GET and HEAD, and equal responses before and after a
//! publish. Responses of a group to callers who may read different members are another example.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use http::HeaderValue;
use packhouse_runtime::{Content, Joined};
use packhouse_store::Blob;
use packhouse_wire::content_coding::Coding;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::cache_meters::CacheMeters;
use crate::coded_variants::{CodedVariants, is_document, vary_by_coding};
use crate::encoder::{Effort, Encoder, encode};
use crate::gzip_parts::GzipParts;
use crate::prepared_response::{PreparedResponse, size};
use crate::weighted_cache::weighted_cache;

/// Maximum size of all cached compressed contents together, in bytes.
const TOTAL_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum size of one compressed content, in bytes.
const ENCODED_BYTES: usize = 3 * 1024 * 1024;
/// Memory of an entry in addition to its content, in bytes.
const ENTRY_BYTES: u64 = 256;
/// Minimum size of a content that is compressed, in bytes. Smaller contents fit into one or two
/// packets anyway.
const MIN_BYTES: u64 = 1024;
/// Maximum size of a content that is compressed, in bytes. Larger contents are files, not
/// documents. Compressing this much takes about a second.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum size of a content that is compressed on the request's own thread, in bytes. This takes
/// less than a millisecond.
const IN_PLACE_BYTES: u64 = 64 * 1024;
/// Maximum number of larger contents that are compressed at the same time. Requests for further
/// contents get the unencoded form.
const MAX_CONCURRENT: usize = 2;

/// Cache of compressed contents, shared by all responses.
pub(crate) struct Encodings {
    enabled: bool,
    lookups: CacheMeters,
    /// Compressed contents. The value is `None` for a content that compression does not make
    /// smaller.
    made: Cache<EncodingKey, Option<Bytes>, EncodedWeight>,
    /// Contents in storage that a task is compressing. No request waits for these tasks.
    under_way: Mutex<HashSet<EncodingKey>>,
    workers: Semaphore,
    gzip_parts: Arc<GzipParts>,
}

#[derive(Clone, Eq, Hash, PartialEq)]
struct EncodingKey {
    /// Tag of the unencoded content, which contains a SHA-256 of the bytes.
    tag: HeaderValue,
    coding: Coding,
}

/// The error for a content that could not be compressed this time.
struct NotMade;

impl Encodings {
    /// Creates an empty cache. Unless `enabled`, the cache never compresses anything.
    pub(crate) fn new(enabled: bool) -> Arc<Self> {
        Self::within(TOTAL_BYTES, enabled)
    }

    fn within(total: u64, enabled: bool) -> Arc<Self> {
        let items = usize::try_from(total / (16 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let made = weighted_cache(items, total, EncodedWeight);
        let lookups = CacheMeters::new("encodings");
        Arc::new(Self {
            enabled,
            lookups,
            made,
            under_way: Mutex::default(),
            workers: Semaphore::new(MAX_CONCURRENT),
            gzip_parts: Arc::default(),
        })
    }

    /// Adds compressed variants to a response that may have them.
    pub(crate) fn offer(&self, mut response: PreparedResponse) -> PreparedResponse {
        if !self.enabled {
            return response;
        }
        if is_worth_it(&response) {
            let identity = response.validators.as_ref();
            response.variants = identity.and_then(|identity| CodedVariants::of(&response.headers, identity));
        }
        let is_empty = matches!(response.content, Content::None);
        response.stands_for_variants = is_empty && response.is_ok() && is_document(&response.headers);
        if response.variants.is_some() || response.stands_for_variants {
            vary_by_coding(&mut response.headers);
        }
        response
    }

    /// Returns the content of a response in a coding. Returns `None` if the host must send this
    /// response unencoded.
    ///
    /// The request's own thread compresses a small content at once. Another thread compresses a
    /// larger content if the response is cached. The request waits for this thread if the content
    /// is in memory, which takes some ten milliseconds. It does not wait if the content must be
    /// read from storage.
    pub(crate) async fn of(self: &Arc<Self>, response: &PreparedResponse, coding: Coding) -> Option<Bytes> {
        let tag = response.validators.as_ref()?.etag.clone();
        let key = EncodingKey { tag, coding };
        match self.made.get(&key) {
            Some(made) => {
                self.lookups.hit.increment(1);
                made
            }
            // Boxed, because few requests come here and the others need not carry this state.
            None => {
                self.lookups.miss.increment(1);
                Box::pin(self.make(key, response)).await
            }
        }
    }

    async fn make(self: &Arc<Self>, key: EncodingKey, response: &PreparedResponse) -> Option<Bytes> {
        match &response.content {
            Content::Inline(bytes) if bytes.len() as u64 <= IN_PLACE_BYTES => {
                let coding = key.coding;
                let now = async { Ok::<_, NotMade>(encode([&**bytes], coding, Effort::Low)) };
                self.made.get_or_insert_async(&key, now).await.ok().flatten()
            }
            Content::Inline(bytes) if response.cached => {
                let making = Arc::clone(self).make_elsewhere(key, ContentSource::Memory(bytes.clone()));
                // A separate task continues for other waiting requests even if this request is
                // cancelled.
                tokio::spawn(making).await.ok().flatten()
            }
            Content::Joined(joined) if response.cached => {
                let making = Arc::clone(self).make_elsewhere(key, self.parts(joined));
                tokio::spawn(making).await.ok().flatten()
            }
            Content::Blob(blob) if response.cached => {
                self.begin(key, blob.clone());
                None
            }
            _ => None,
        }
    }

    fn parts(&self, joined: &Joined) -> ContentSource {
        ContentSource::Parts(joined.clone(), Arc::clone(&self.gzip_parts))
    }

    /// Starts to compress a content in storage, unless a task is already compressing it.
    fn begin(self: &Arc<Self>, key: EncodingKey, blob: Blob) {
        if self.under_way().insert(key.clone()) {
            let encodings = Arc::clone(self);
            tokio::spawn(async move {
                let making = Arc::clone(&encodings).make_elsewhere(key.clone(), ContentSource::Stored(blob));
                making.await;
                encodings.under_way().remove(&key);
            });
        }
    }

    async fn make_elsewhere(self: Arc<Self>, key: EncodingKey, source: ContentSource) -> Option<Bytes> {
        let coding = key.coding;
        let making = async {
            let _permit = self.workers.try_acquire().map_err(|_| NotMade)?;
            tokio::task::spawn_blocking(move || source.encode(coding)).await.map_err(|_| NotMade)?
        };
        self.made.get_or_insert_async(&key, making).await.ok().flatten()
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<EncodingKey>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports whether the response is successful and its size is worth compressing. Content with
/// secrets is never compressed. A client that controls another part of such content could infer the
/// secret from the compressed length.
fn is_worth_it(response: &PreparedResponse) -> bool {
    response.is_ok()
        && !response.confidential
        && matches!(response.content, Content::Inline(_) | Content::Joined(_) | Content::Blob(_))
        && (MIN_BYTES..=MAX_BYTES).contains(&size(&response.content))
}

enum ContentSource {
    Memory(Bytes),
    Parts(Joined, Arc<GzipParts>),
    Stored(Blob),
}

impl ContentSource {
    /// Compresses the content on a thread that may block. Returns `None` if compression saves too
    /// little or the result is too large for the cache. Fails with `NotMade` if the content cannot
    /// be read now.
    fn encode(self, coding: Coding) -> Result<Option<Bytes>, NotMade> {
        let blob = match self {
            Self::Memory(bytes) => return Ok(encode([&*bytes], coding, Effort::High)),
            Self::Parts(joined, parts) if coding == Coding::Gzip => {
                return Ok(parts.encode(&joined, ENCODED_BYTES));
            }
            Self::Parts(joined, _) => {
                return Ok(encode(joined.parts().iter().map(|part| &*part.bytes), coding, Effort::High));
            }
            Self::Stored(blob) => blob,
        };
        let size = blob.size();
        let worth = usize::try_from(size - size / 8).unwrap_or(usize::MAX).min(ENCODED_BYTES);
        let Ok(mut encoder) = Encoder::new(coding, Effort::High, worth) else { return Ok(None) };
        let mut pieces = Box::pin(blob.stream(0..size));
        let runtime = Handle::current();
        while let Some(piece) = runtime.block_on(pieces.next()) {
            let piece = piece.map_err(|_| NotMade)?;
            if encoder.write(&piece).is_err() {
                return Ok(None);
            }
        }
        Ok(encoder.finish().ok())
    }
}

#[derive(Clone)]
struct EncodedWeight;

impl Weighter<EncodingKey, Option<Bytes>> for EncodedWeight {
    fn weight(&self, _: &EncodingKey, made: &Option<Bytes>) -> u64 {
        ENTRY_BYTES + made.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests;
