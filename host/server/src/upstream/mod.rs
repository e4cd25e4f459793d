//! Upstreams of proxy repositories: everything between a plugin's question and another server.
//!
//! A question is a [`plan`]. [`answer`] decides whether a kept answer will do, else a [`flight`] asks the upstream once for all
//! who wait ([`fly`]), by way of [`exchange`] (redirects, [`credentials`]) to an [`address`] that may be. What comes is taken in
//! by [`body`], compared with what it must be, and kept by the store. A [`site`] is one repository's upstream: its client, its
//! places, its [`breaker`].

pub(crate) mod address;
mod answer;
mod body;
mod breaker;
pub(crate) mod credentials;
mod exchange;
mod flight;
mod fly;
mod negative;
mod plan;
mod policy;
mod reply;
mod site;
mod trouble;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_runtime::{Fetch, Reply, RepositoryView, ServiceError};
use packhouse_store::{Digest, RepositoryId, Store};

use self::address::{Addresses, SystemNames};
use self::answer::Asker;
use self::credentials::{Access, Credentials};
use self::flight::{Flight, Passenger};
use self::fly::Crew;
use self::negative::{Key, Negatives};
use self::plan::Plan;
use self::reply::ProxyReply;
pub(crate) use self::site::{Bounds, CountsView};
use self::site::{Counts, Site};
use self::trouble::Trouble;
use crate::config::Config;
use crate::identity::{SealError, Sealer};

/// All upstreams.
pub(crate) struct Upstreams {
    store: Store,
    sealer: Sealer,
    addresses: Addresses,
    bounds: Bounds,
    sites: Mutex<HashMap<RepositoryId, Known>>,
    flights: Mutex<HashMap<Key, Arc<Flight>>>,
    negatives: Negatives,
}

/// A repository's upstream, as long as it is reached in the same way.
struct Known {
    connection: u64,
    site: Arc<Site>,
    counts: Arc<Counts>,
}

impl Upstreams {
    /// Upstreams at public addresses and in the networks that the configuration allows.
    pub(crate) fn new(store: Store, config: &Config) -> Arc<Upstreams> {
        let (allowed, bounds) = (config.upstream_allow_networks.as_slice(), config.upstream);
        Arc::new(Upstreams {
            store,
            sealer: Sealer::new(config.sealing_key.clone(), &config.data),
            addresses: Addresses::new(allowed, Arc::new(SystemNames)),
            bounds,
            sites: Mutex::default(),
            flights: Mutex::default(),
            negatives: Negatives::default(),
        })
    }

    /// Asks a proxy's upstream; returns at once. `credentials`: whether it may be shown any. `Denied` for a repository that is no proxy,
    /// `Invalid` for a question that cannot be.
    pub(crate) fn fetch(
        self: &Arc<Self>,
        proxy: &RepositoryView,
        fetch: Fetch,
        credentials: bool,
    ) -> Result<Box<dyn Reply>, ServiceError> {
        let expected = fetch.expect.clone();
        let plan = Plan { credentials, ..Plan::of(proxy, fetch)? };
        let (site, counts) = self.site(proxy, &plan)?;
        let asker = Asker { upstreams: Arc::clone(self), site, plan: Arc::new(plan), expected };
        Ok(Box::new(ProxyReply::start(asker, counts)))
    }

    /// What was counted of a repository's questions since this program started.
    pub(crate) fn counts(&self, repository: RepositoryId) -> CountsView {
        lock(&self.sites).get(&repository).map(|known| known.counts.view()).unwrap_or_default()
    }

    /// Keeps no longer what begins with `prefix`; how many answers that were.
    pub(crate) async fn purge(
        &self,
        repository: RepositoryId,
        prefix: &str,
    ) -> Result<u64, packhouse_store::StoreError> {
        self.negatives.purge(repository, prefix);
        self.store.purge_cache(repository, prefix).await
    }

    /// A repository's credentials or its upstream changed: what was given out to it is not used again.
    pub(crate) fn forget(&self, repository: RepositoryId) {
        if let Some(known) = lock(&self.sites).get_mut(&repository) {
            known.connection = 0;
        }
    }

    /// Seals credentials for this repository's upstream, and for no other.
    pub(crate) fn seal(
        &self,
        repository: RepositoryId,
        credentials: &Credentials,
    ) -> Result<String, SealError> {
        self.sealer.seal(&purpose(repository), &credentials.to_secret())
    }

    /// What a question may show.
    async fn access(&self, site: &Site, plan: &Plan) -> Result<Access, Trouble> {
        if !plan.credentials {
            return Ok(Access::None);
        }
        let read = async {
            let Some(sealed) = self.store.upstream_credentials(plan.repository).await? else {
                return Ok(None);
            };
            let opened =
                self.sealer.open(&purpose(plan.repository), &sealed).map_err(Trouble::unavailable)?;
            Ok(Credentials::of_secret(&opened))
        };
        Ok(Access::Challenged(site.keyring.own(read).await?))
    }

    fn site(&self, proxy: &RepositoryView, plan: &Plan) -> Result<(Arc<Site>, Arc<Counts>), ServiceError> {
        let connection = plan.policy.connection().max(1);
        let mut sites = lock(&self.sites);
        let known = sites.get(&proxy.id);
        if let Some(known) = known.filter(|known| known.connection == connection) {
            return Ok((Arc::clone(&known.site), Arc::clone(&known.counts)));
        }
        let counts = known.map_or_else(|| Counts::new(&proxy.name), |known| Arc::clone(&known.counts));
        let site = Arc::new(Site::new(&plan.policy, &self.addresses, self.bounds)?);
        let known = Known { connection, site: Arc::clone(&site), counts: Arc::clone(&counts) };
        sites.insert(proxy.id, known);
        Ok((site, counts))
    }

    /// A place in the flight that brings the answer: in one that is under way, or in a new one.
    fn board(self: &Arc<Self>, site: &Arc<Site>, plan: &Arc<Plan>, expected: &[Digest]) -> Passenger {
        let key = Key(plan.repository, plan.name);
        let mut flights = lock(&self.flights);
        let under_way = flights.get(&key).filter(|_| plan.is_kept()).and_then(|flight| flight.join());
        if let Some(passenger) = under_way.filter(|one| expected.iter().all(|digest| one.expect(digest))) {
            return passenger;
        }
        let (passenger, wanted) = Flight::begin();
        expected.iter().for_each(|digest| {
            passenger.expect(digest);
        });
        let flight = Arc::clone(&passenger.flight);
        if plan.is_kept() {
            flights.insert(key, Arc::clone(&flight));
        }
        let crew = Crew {
            upstreams: Arc::clone(self),
            site: Arc::clone(site),
            plan: Arc::clone(plan),
            flight: Arc::clone(&flight),
        };
        let upstreams = Arc::clone(self);
        tokio::spawn(async move {
            crew.fly(wanted).await;
            upstreams.landed(key, &flight);
        });
        passenger
    }

    /// Whoever asks from now on finds what was kept.
    fn landed(&self, key: Key, flight: &Arc<Flight>) {
        let mut flights = lock(&self.flights);
        if flights.get(&key).is_some_and(|known| Arc::ptr_eq(known, flight)) {
            flights.remove(&key);
        }
    }

    /// Keeps the cache within its bound; one at a time, and whoever comes meanwhile leaves it to that one.
    async fn make_room(&self, site: &Site, plan: &Plan) {
        let Some(most) = plan.policy.cache_max_bytes else { return };
        let Ok(_shrinking) = site.shrinking.try_lock() else { return };
        if let Err(error) = self.store.shrink_cache(plan.repository, most).await {
            tracing::warn!(%error, repository = %plan.repository, "the cache could not be kept within its bound");
        }
    }
}

/// What credentials are sealed for.
fn purpose(repository: RepositoryId) -> String {
    format!("upstream {repository}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
