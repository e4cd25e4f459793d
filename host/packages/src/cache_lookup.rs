//! The step that looks a request up in the response cache, and the later step that stores the
//! response.

use std::sync::Arc;

use packhouse_runtime::{Action, Content, Intent};
use packhouse_store::{Store, StoreError};

use crate::cache_entry::CacheEntry;
use crate::error_response::HttpError;
use crate::packed_response::UnpackedEntry;
use crate::prepared_response::PreparedResponse;
use crate::repository_request::RepositoryRequest;
use crate::response_cache::{CacheKey, Cached, ResponseCache, in_memory};
use crate::validity::{CurrentRows, Lifespan, Validity};

/// Result of a look-up, and the slot in which a response to this request would be stored.
pub(crate) struct CacheLookup<'a> {
    /// Slot for the response; `None` if a response to this request is never cached.
    slot: Option<CacheSlot<'a>>,
    found: LookupResult,
    is_valid: bool,
    /// Time of the look-up, at which the validity of the entry is judged.
    now: i64,
    /// Number of the last change of advisories at the time of the look-up.
    advisories: i64,
}

enum LookupResult {
    Nothing,
    Whole(Arc<CacheEntry>),
    Packed(Box<UnpackedEntry>),
}

impl LookupResult {
    fn of(cached: Option<Cached>) -> Self {
        match cached {
            None => Self::Nothing,
            Some(Cached::Whole(entry)) => Self::Whole(entry),
            Some(Cached::Packed(entry)) => {
                entry.unpack().map_or(Self::Nothing, |entry| Self::Packed(Box::new(entry)))
            }
        }
    }

    /// Reports whether a read found that the file in this entry is missing or damaged. A later
    /// upload may have replaced the file since then.
    fn is_damaged(&self) -> bool {
        match self {
            Self::Whole(entry) => match &entry.response.content {
                Content::Blob(blob) => blob.is_damaged(),
                _ => false,
            },
            Self::Nothing | Self::Packed(_) => false,
        }
    }

    /// Returns the entry's validity, and the number of the last change of advisories when the entry
    /// was made.
    fn made(&self) -> Option<(&Validity, i64)> {
        match self {
            Self::Nothing => None,
            Self::Whole(entry) => Some((&entry.validity, entry.advisories)),
            Self::Packed(entry) => Some((&entry.validity, entry.advisories)),
        }
    }
}

struct CacheSlot<'a> {
    key: CacheKey,
    rows: CurrentRows<'a>,
}

impl<'a> CacheLookup<'a> {
    /// Looks a request up. Requests without a repository are not cached. If links in the response
    /// contain a site that the server does not know, the cache admits only a few such sites at a
    /// time.
    pub(crate) fn of(
        cache: &ResponseCache,
        request: &RepositoryRequest<'a>,
        follows_unknown_site: bool,
    ) -> Self {
        let may_cache = || !follows_unknown_site || cache.unknown_sites.admit(&request.head.address);
        let slot = request.found().filter(|_| may_cache()).and_then(|row| {
            let key = CacheKey::of(request.plugin.number(), row.id, &request.members, &request.head)?;
            Some(CacheSlot {
                key,
                rows: CurrentRows {
                    row,
                    members: &request.principal.facts.members,
                    policies: request.principal.facts.policies,
                },
            })
        });
        let found = LookupResult::of(slot.as_ref().and_then(|slot| cache.get(&slot.key)));
        let store = &request.app.store;
        // Plugins see the clock of this process, so the same clock judges the validity of their
        // responses.
        let now = packhouse_store::now_ms();
        // Read the number before the plugin is called. Otherwise, a response that is made during an
        // import of advisories could stay valid after the import.
        let advisories = request.app.advisories.number();
        let is_valid = match (&slot, found.made()) {
            (Some(slot), Some((validity, made_at))) => {
                made_at == advisories && !found.is_damaged() && validity.holds(store, slot.rows, now)
            }
            _ => false,
        };
        match (&slot, &found) {
            (None, _) => {}
            (Some(_), LookupResult::Nothing) => cache.lookups.miss.increment(1),
            (Some(_), _) if is_valid => cache.lookups.hit.increment(1),
            (Some(_), _) => cache.lookups.stale.increment(1),
        }
        Self { slot, found, is_valid, now, advisories }
    }

    /// Returns the entry if it is valid. If a packed entry is requested again, its unpacked form is
    /// cached too. Fails if the store cannot read the bytes.
    pub(crate) async fn entry(
        &mut self,
        cache: &ResponseCache,
        store: &Store,
    ) -> Result<Option<Arc<CacheEntry>>, StoreError> {
        match std::mem::replace(&mut self.found, LookupResult::Nothing) {
            _ if !self.is_valid => Ok(None),
            LookupResult::Nothing => Ok(None),
            LookupResult::Whole(entry) => Ok(Some(entry)),
            // Boxed, because the state is large and most requests find an entry that is not packed.
            LookupResult::Packed(entry) => Box::pin(self.read(*entry, cache, store)).await,
        }
    }

    async fn read(
        &self,
        entry: UnpackedEntry,
        cache: &ResponseCache,
        store: &Store,
    ) -> Result<Option<Arc<CacheEntry>>, StoreError> {
        let found = match store.small_blob(entry.small).await {
            // The bytes are damaged, so call the plugin: it decides how to respond.
            Err(StoreError::Corrupt(_)) => None,
            found => found?,
        };
        // The blob was deleted in the meantime, so call the plugin.
        let Some(bytes) = found else { return Ok(None) };
        let requested_again = entry.requested_again;
        let entry = Arc::new(entry.with(bytes));
        if let Some(slot) = self.slot.as_ref().filter(|_| requested_again) {
            cache.insert_unpacked(&slot.key, &entry);
        }
        Ok(Some(entry))
    }

    /// Returns the intent if the cache contains an entry for the request. The intent depends only
    /// on the request, so it is correct even if the entry is stale.
    pub(crate) fn intent(&self) -> Option<&Arc<Intent>> {
        match &self.found {
            LookupResult::Nothing => None,
            LookupResult::Whole(entry) => Some(&entry.intent),
            LookupResult::Packed(entry) => Some(&entry.intent),
        }
    }

    /// Caches a response if allowed; the bytes of a small file are cached with it. Returns the
    /// response to send. Fails if the store cannot read the file.
    pub(crate) async fn store(
        self,
        cache: &ResponseCache,
        intent: Arc<Intent>,
        mut response: PreparedResponse,
    ) -> Result<Arc<PreparedResponse>, HttpError> {
        let slot = self.slot.filter(|_| may_be_cached(&intent, &response));
        let reads = std::mem::take(&mut response.reads);
        let lifespan = Lifespan { from: self.now, until: response.until };
        let Some((key, validity)) =
            slot.and_then(|CacheSlot { key, rows }| Some((key, Validity::of(rows, reads, lifespan)?)))
        else {
            return Ok(Arc::new(response));
        };
        let response = Box::pin(in_memory(response)).await?;
        let response = Arc::new(PreparedResponse { cached: true, ..response });
        let (advisories, cached) = (self.advisories, Arc::clone(&response));
        cache.insert(&key, CacheEntry { validity, advisories, intent, response: cached });
        Ok(response)
    }
}

/// Reports whether a response may be cached. Only responses to reads may, with two exceptions. The
/// look-up does not check further repositories that an intent names. A response for one caller must
/// not reach another caller.
fn may_be_cached(intent: &Intent, response: &PreparedResponse) -> bool {
    let same_for_all = intent.also_read.is_empty() && !intent.for_caller;
    response.cacheable && intent.action == Action::Read && same_for_all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_cache::tests::{intent, response};

    #[tokio::test]
    async fn reads_that_are_equal_for_all_callers_may_be_cached() {
        let prepared = response(200, 10).await;
        assert!(may_be_cached(&intent(), &prepared));
        for intent in [
            Intent { action: Action::Publish, ..intent() },
            Intent { action: Action::Open, ..intent() },
            Intent { also_read: vec!["other".to_owned()], ..intent() },
            Intent { for_caller: true, ..intent() },
        ] {
            assert!(!may_be_cached(&intent, &prepared), "{intent:?}");
        }
        let uncacheable = PreparedResponse { cacheable: false, ..(*prepared).clone() };
        assert!(!may_be_cached(&intent(), &uncacheable));
    }
}
