//! The step that looks into the response cache, and its counterpart that keeps a response there.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use packhouse_runtime::{Action, Content, Intent};
use packhouse_store::{Store, StoreError};

use crate::cache_entry::CacheEntry;
use crate::error_response::HttpError;
use crate::packed_response::UnpackedEntry;
use crate::prepared_response::PreparedResponse;
use crate::repository_request::RepositoryRequest;
use crate::response_cache::{CacheKey, Cached, ResponseCache, in_memory};
use crate::trials::OnTrial;
use crate::validity::{CurrentRows, Lifespan, Validity};

/// What the cache has for one request, and where a response to it would be kept.
pub(crate) struct CacheLookup<'a> {
    /// None for a request whose response is never kept.
    slot: Option<Slot<'a>>,
    found: Found,
    is_valid: bool,
    /// The shadow that the request's answer is compared with; 0 for none.
    shadow: i64,
    /// When the entry is judged.
    now: i64,
    /// The number of changes of advisories then.
    advisories: i64,
}

/// What the cache has.
enum Found {
    Nothing,
    Whole(Arc<CacheEntry>),
    Packed(Box<UnpackedEntry>),
}

impl Found {
    fn of(cached: Option<Cached>) -> Self {
        match cached {
            None => Self::Nothing,
            Some(Cached::Whole(entry)) => Self::Whole(entry),
            Some(Cached::Packed(entry)) => {
                entry.unpack().map_or(Self::Nothing, |entry| Self::Packed(Box::new(entry)))
            }
        }
    }

    /// Whether a read found the file that it holds missing or damaged: by now there may be another
    /// in its place.
    fn is_damaged(&self) -> bool {
        match self {
            Self::Whole(entry) => match &entry.response.content {
                Content::Blob(blob) => blob.is_damaged(),
                _ => false,
            },
            Self::Nothing | Self::Packed(_) => false,
        }
    }

    /// How long it is valid, and with which number of changes of advisories it was made.
    fn made(&self) -> Option<(&Validity, i64)> {
        match self {
            Self::Nothing => None,
            Self::Whole(entry) => Some((&entry.validity, entry.advisories)),
            Self::Packed(entry) => Some((&entry.validity, entry.advisories)),
        }
    }
}

struct Slot<'a> {
    key: CacheKey,
    rows: CurrentRows<'a>,
}

impl<'a> CacheLookup<'a> {
    /// Looks a request up. Nothing is kept of a request that is about no repository. Where links follow a site that the server does
    /// not know, answers are kept for a few such sites at a time.
    pub(crate) fn of(
        cache: &ResponseCache,
        request: &RepositoryRequest<'a>,
        follows_unknown_site: bool,
    ) -> Self {
        let keeps = || !follows_unknown_site || cache.unknown_sites.keep(&request.head.address);
        let slot = request.found().filter(|_| keeps()).and_then(|row| {
            let key = CacheKey::of(request.plugin.number(), row.id, &request.members, &request.head)?;
            Some(Slot {
                key,
                rows: CurrentRows {
                    row,
                    members: &request.principal.facts.members,
                    policies: request.principal.facts.policies,
                },
            })
        });
        let found = Found::of(slot.as_ref().and_then(|slot| cache.get(&slot.key)));
        let store = &request.app.store;
        // What a plugin made of the time, it made of this process's.
        let now = packhouse_store::now_ms();
        // Asked before the plugin is: what it makes while advisories are brought in is not kept for afterwards.
        let advisories = request.app.advisories.number();
        let is_valid = match (&slot, found.made()) {
            (Some(slot), Some((validity, made_at))) => {
                made_at == advisories && !found.is_damaged() && validity.holds(store, slot.rows, now)
            }
            _ => false,
        };
        match (&slot, &found) {
            (None, _) => {}
            (Some(_), Found::Nothing) => cache.lookups.miss.increment(1),
            (Some(_), _) if is_valid => cache.lookups.hit.increment(1),
            (Some(_), _) => cache.lookups.stale.increment(1),
        }
        let shadow = request.on_trial.as_ref().and_then(OnTrial::shadow).unwrap_or_default();
        Self { slot, found, is_valid, shadow, now, advisories }
    }

    /// The valid entry, if there is one. What was packed is kept as it is sent when it is asked for again; an error is one of the store,
    /// when its bytes cannot be read.
    pub(crate) async fn entry(
        &mut self,
        cache: &ResponseCache,
        store: &Store,
    ) -> Result<Option<Arc<CacheEntry>>, StoreError> {
        match std::mem::replace(&mut self.found, Found::Nothing) {
            _ if !self.is_valid => Ok(None),
            Found::Nothing => Ok(None),
            Found::Whole(entry) => Ok(Some(entry)),
            // Its state is large, and what is asked for most does not come here.
            Found::Packed(entry) => Box::pin(self.read(*entry, cache, store)).await,
        }
    }

    async fn read(
        &self,
        entry: UnpackedEntry,
        cache: &ResponseCache,
        store: &Store,
    ) -> Result<Option<Arc<CacheEntry>>, StoreError> {
        let found = match store.small_blob(entry.small).await {
            // The plugin's answer says what becomes of damaged bytes.
            Err(StoreError::Corrupt(_)) => None,
            found => found?,
        };
        // None where it was removed since: then the plugin is asked.
        let Some(bytes) = found else { return Ok(None) };
        let asked_again = entry.asked_again;
        let entry = Arc::new(entry.with(bytes));
        if let Some(slot) = self.slot.as_ref().filter(|_| asked_again) {
            cache.insert_unpacked(&slot.key, &entry);
        }
        Ok(Some(entry))
    }

    /// What the request would do, if it was asked before: that is told from the request alone, whatever was changed since.
    pub(crate) fn intent(&self) -> Option<&Arc<Intent>> {
        match &self.found {
            Found::Nothing => None,
            Found::Whole(entry) => Some(&entry.intent),
            Found::Packed(entry) => Some(&entry.intent),
        }
    }

    /// Keeps a response if it may be kept, a small file with its bytes. Returns the response as it is sent. An error is one of the
    /// store, when the file cannot be read.
    pub(crate) async fn keep(
        self,
        cache: &ResponseCache,
        intent: Arc<Intent>,
        mut response: PreparedResponse,
    ) -> Result<Arc<PreparedResponse>, HttpError> {
        let slot = self.slot.filter(|_| may_be_kept(&intent, &response));
        let reads = std::mem::take(&mut response.reads);
        let lifespan = Lifespan { from: self.now, until: response.until };
        let Some((key, validity)) =
            slot.and_then(|Slot { key, rows }| Some((key, Validity::of(rows, reads, lifespan)?)))
        else {
            return Ok(Arc::new(response));
        };
        let response = Box::pin(in_memory(response)).await?;
        let response = Arc::new(PreparedResponse { kept: true, ..response });
        let compared = AtomicI64::new(self.shadow);
        let (advisories, kept) = (self.advisories, Arc::clone(&response));
        cache.insert(&key, CacheEntry { validity, advisories, intent, response: kept, compared });
        Ok(response)
    }
}

/// A response to a read may be kept, except in two cases: the look-up says nothing of further repositories that an intent names, and
/// a response that was made for one caller is not another's.
fn may_be_kept(intent: &Intent, response: &PreparedResponse) -> bool {
    let same_for_all = intent.also_read.is_empty() && !intent.for_caller;
    response.cacheable && intent.action == Action::Read && same_for_all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_cache::tests::{intent, response};

    #[tokio::test]
    async fn a_read_that_is_the_same_for_all_callers_may_be_kept() {
        let prepared = response(200, 10).await;
        assert!(may_be_kept(&intent(), &prepared));
        for intent in [
            Intent { action: Action::Publish, ..intent() },
            Intent { action: Action::Open, ..intent() },
            Intent { also_read: vec!["other".to_owned()], ..intent() },
            Intent { for_caller: true, ..intent() },
        ] {
            assert!(!may_be_kept(&intent, &prepared), "{intent:?}");
        }
        let uncacheable = PreparedResponse { cacheable: false, ..(*prepared).clone() };
        assert!(!may_be_kept(&intent(), &uncacheable));
    }
}
