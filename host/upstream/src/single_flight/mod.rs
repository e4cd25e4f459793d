//! One request to an upstream for all calls that want the same response.
//!
//! A [`SharedFetch`] is a request that is under way, a [`Waiter`] one of those who wait for it. A [`Fetcher`] is what
//! the request needs: it [`run`]s from the [`head`] of the response to the [`download`] of the body.

mod download;
mod fetcher;
mod head;
mod run;
mod shared_fetch;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use packhouse_store::Digest;

use self::fetcher::Fetcher;
use self::shared_fetch::SharedFetch;
pub(crate) use self::shared_fetch::{Waiter, arriving};
use super::cache_key::CacheKey;
use super::client::UpstreamClient;
use super::context::FetchContext;
use super::plan::FetchPlan;
use super::sync::lock;

/// All fetches that are under way.
pub(crate) struct SingleFlight {
    pub context: Arc<FetchContext>,
    under_way: Mutex<HashMap<CacheKey, Arc<SharedFetch>>>,
}

impl SingleFlight {
    /// Nothing is under way yet.
    pub(crate) fn new(context: Arc<FetchContext>) -> Arc<SingleFlight> {
        Arc::new(SingleFlight { context, under_way: Mutex::default() })
    }

    /// Joins a fetch that is under way for the same response, or starts one. `expected`: what the body's digests must be.
    pub(crate) fn join_or_start(
        self: &Arc<Self>,
        client: &Arc<UpstreamClient>,
        plan: &Arc<FetchPlan>,
        expected: &[Digest],
    ) -> Waiter {
        let key = plan.key();
        let mut under_way = lock(&self.under_way);
        let joined = under_way.get(&key).filter(|_| plan.is_cacheable()).and_then(|shared| shared.join());
        if let Some(waiter) = joined.filter(|waiter| expected.iter().all(|digest| waiter.expect(digest))) {
            return waiter;
        }
        let (waiter, demand) = SharedFetch::start();
        expected.iter().for_each(|digest| {
            waiter.expect(digest);
        });
        let shared = Arc::clone(&waiter.shared);
        if plan.is_cacheable() {
            under_way.insert(key, Arc::clone(&shared));
        }
        let fetcher = Fetcher {
            context: Arc::clone(&self.context),
            client: Arc::clone(client),
            plan: Arc::clone(plan),
            shared: Arc::clone(&shared),
            claimed: AtomicBool::new(false),
        };
        let fetches = Arc::clone(self);
        tokio::spawn(async move {
            fetcher.run(demand).await;
            fetches.remove(key, &shared);
        });
        waiter
    }

    /// Whether a fetch of this response is under way.
    pub(crate) fn is_under_way(&self, key: CacheKey) -> bool {
        lock(&self.under_way).contains_key(&key)
    }

    /// Removes a fetch that has ended: later calls find its response in the cache.
    fn remove(&self, key: CacheKey, shared: &Arc<SharedFetch>) {
        let mut under_way = lock(&self.under_way);
        if under_way.get(&key).is_some_and(|known| Arc::ptr_eq(known, shared)) {
            under_way.remove(&key);
        }
    }
}
