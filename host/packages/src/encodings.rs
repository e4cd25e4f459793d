//! Contents in their codings, each made once. They are found by the tag of the content as it is, which says its bytes, so that all
//! responses with the same bytes share them: that of a GET and of a HEAD, of a group to callers who may read different members, of a
//! call that came to the same result after a publish.

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

/// Bytes of all contents that are kept compressed.
const TOTAL_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of one.
const ENCODED_BYTES: usize = 3 * 1024 * 1024;
/// What one costs besides its bytes.
const ENTRY_BYTES: u64 = 256;
/// Less than this fits into a packet or two anyway.
const LEAST_BYTES: u64 = 1024;
/// More than this is a file and no document. It takes about a second to compress.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Up to this a content is compressed on the request's own thread, in less than a millisecond.
const IN_PLACE_BYTES: u64 = 64 * 1024;
/// Larger contents that are compressed at one time. Requests for others are answered with the content as it is.
const AT_ONE_TIME: usize = 2;

/// See the module.
pub(crate) struct Encodings {
    enabled: bool,
    lookups: CacheMeters,
    /// None for a content that compressing does not make smaller.
    made: Cache<EncodingKey, Option<Bytes>, EncodedWeight>,
    /// Stored contents that are being compressed. Nobody waits for them.
    under_way: Mutex<HashSet<EncodingKey>>,
    workers: Semaphore,
    gzip_parts: Arc<GzipParts>,
}

#[derive(Clone, Eq, Hash, PartialEq)]
struct EncodingKey {
    /// Of the content as it is: it is made from a SHA-256 of the bytes.
    tag: HeaderValue,
    coding: Coding,
}

/// A content that was not compressed this time.
struct NotMade;

impl Encodings {
    /// None are made yet. Unless `enabled`, none ever are.
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
            workers: Semaphore::new(AT_ONE_TIME),
            gzip_parts: Arc::default(),
        })
    }

    /// The response with its coded variants, if it is one that may have any.
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

    /// The content of a response in a coding; none where it is to be sent as it is, for now or for good.
    ///
    /// A small content is compressed here and now. A larger one is compressed on another thread if the response is kept: the request
    /// waits where the content is in memory, which takes some ten milliseconds, and not where it is read from storage.
    pub(crate) async fn of(self: &Arc<Self>, response: &PreparedResponse, coding: Coding) -> Option<Bytes> {
        let tag = response.validators.as_ref()?.etag.clone();
        let key = EncodingKey { tag, coding };
        match self.made.get(&key) {
            Some(made) => {
                self.lookups.hit.increment(1);
                made
            }
            // Few requests come here: the others shall not carry its state along.
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
            Content::Inline(bytes) if response.kept => {
                let making = Arc::clone(self).make_elsewhere(key, Source::Memory(bytes.clone()));
                // A task of its own: if this request is given up, what others wait for is made all the same.
                tokio::spawn(making).await.ok().flatten()
            }
            Content::Joined(joined) if response.kept => {
                let making = Arc::clone(self).make_elsewhere(key, self.parts(joined));
                tokio::spawn(making).await.ok().flatten()
            }
            Content::Blob(blob) if response.kept => {
                self.begin(key, blob.clone());
                None
            }
            _ => None,
        }
    }

    fn parts(&self, joined: &Joined) -> Source {
        Source::Parts(joined.clone(), Arc::clone(&self.gzip_parts))
    }

    /// Begins to compress a stored content, unless that was begun before.
    fn begin(self: &Arc<Self>, key: EncodingKey, blob: Blob) {
        if self.under_way().insert(key.clone()) {
            let encodings = Arc::clone(self);
            tokio::spawn(async move {
                let making = Arc::clone(&encodings).make_elsewhere(key.clone(), Source::Stored(blob));
                making.await;
                encodings.under_way().remove(&key);
            });
        }
    }

    async fn make_elsewhere(self: Arc<Self>, key: EncodingKey, source: Source) -> Option<Bytes> {
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

/// Whether it is a success with a content of a size that is worth compressing. What holds secrets is never compressed: its length
/// would tell of them to who can choose another part of it.
fn is_worth_it(response: &PreparedResponse) -> bool {
    response.is_ok()
        && !response.confidential
        && matches!(response.content, Content::Inline(_) | Content::Joined(_) | Content::Blob(_))
        && (LEAST_BYTES..=MOST_BYTES).contains(&size(&response.content))
}

/// Where the bytes of a large content are.
enum Source {
    Memory(Bytes),
    Parts(Joined, Arc<GzipParts>),
    Stored(Blob),
}

impl Source {
    /// Compresses it, on a thread that may be blocked. None where that saves too little, or the result is too large to be kept.
    /// `NotMade` if the content cannot be read at the moment.
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
