//! Combines concurrent calls that need the same response into one request to the upstream.
//!
//! A [`SharedFetch`] is a request in progress, and a [`Waiter`] is a call that waits for it. A
//! [`Fetcher`] executes the request: it [`run`]s from the [`head`] of the response to the
//! [`download`] of the body.

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

pub(crate) struct SingleFlight {
    pub context: Arc<FetchContext>,
    under_way: Mutex<HashMap<CacheKey, Arc<SharedFetch>>>,
}

impl SingleFlight {
    /// Creates an empty set of fetches.
    pub(crate) fn new(context: Arc<FetchContext>) -> Arc<SingleFlight> {
        Arc::new(SingleFlight { context, under_way: Mutex::default() })
    }

    /// Joins a fetch in progress for the same response, or starts one. `expected` contains the
    /// required digests of the body.
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

    /// Returns true if a fetch of this response is in progress.
    pub(crate) fn is_under_way(&self, key: CacheKey) -> bool {
        lock(&self.under_way).contains_key(&key)
    }

    /// Removes a finished fetch. Later calls find its response in the cache.
    fn remove(&self, key: CacheKey, shared: &Arc<SharedFetch>) {
        let mut under_way = lock(&self.under_way);
        if under_way.get(&key).is_some_and(|known| Arc::ptr_eq(known, shared)) {
            under_way.remove(&key);
        }
    }
}
