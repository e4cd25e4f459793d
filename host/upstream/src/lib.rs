//! Upstreams of proxy repositories: everything between a plugin's question and another server.
//!
//! A question is a [`plan`]. [`answer`] decides whether a kept answer will do, else a [`flight`] asks the upstream once for all
//! who wait ([`fly`]), by way of [`exchange`] (redirects, [`credentials`]) to an [`address`] that may be. What comes is taken in
//! by [`body`], compared with what it must be, and kept by the store; metadata once a plugin could read them ([`candidate`]). An
//! [`errand`] is what one call asks, and its room among those that wait. A [`site`] is one repository's upstream: its client, its
//! places, its [`breaker`].

pub mod address;
mod answer;
mod body;
mod breaker;
mod candidate;
pub mod credentials;
mod errand;
mod exchange;
mod flight;
mod fly;
mod negative;
mod plan;
mod policy;
pub mod reach;
mod reply;
mod site;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_runtime::{Fetch, Plugin, Reply, RepositoryView, ServiceError};
use packhouse_store::{Digest, RepositoryId, Store};
use tokio::sync::Semaphore;

use self::address::{Addresses, SystemNames};
use self::answer::Asker;
use self::candidate::Candidates;
use self::credentials::{Access, Credentials};
pub use self::errand::{End, Errand};
use self::errand::{Ended, Used};
use self::flight::{Flight, Passenger};
use self::fly::Crew;
use self::negative::{Key, Negatives};
use self::plan::Plan;
use self::reply::ProxyReply;
pub use self::site::CountsView;
use self::site::{Counts, Outcome, Site};
use self::trouble::Trouble;
use packhouse_config::{Config, UpstreamBounds};
use packhouse_identity::{SealError, Sealer};

/// All upstreams.
pub struct Upstreams {
    store: Store,
    sealer: Sealer,
    addresses: Addresses,
    bounds: UpstreamBounds,
    /// Whether metrics may name repositories: whoever reaches the API's listener reads those that stand there.
    named: bool,
    sites: Mutex<HashMap<RepositoryId, Known>>,
    flights: Mutex<HashMap<Key, Arc<Flight>>>,
    negatives: Negatives,
    candidates: Candidates,
    /// For calls of one plugin that wait, by its format.
    rooms: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A repository's upstream, as long as it is reached in the same way.
struct Known {
    connection: u64,
    site: Arc<Site>,
    counts: Arc<Counts>,
}

impl Upstreams {
    /// Upstreams at public addresses and in the networks that the configuration allows.
    pub fn new(store: Store, config: &Config) -> Arc<Upstreams> {
        let (allowed, bounds) = (config.upstream_allow_networks.as_slice(), config.upstream);
        Arc::new(Upstreams {
            store,
            sealer: Sealer::new(config.sealing_key.clone(), &config.data),
            addresses: Addresses::new(allowed, Arc::new(SystemNames)),
            bounds,
            named: config.metrics_listen.is_some(),
            sites: Mutex::default(),
            flights: Mutex::default(),
            negatives: Negatives::default(),
            candidates: Candidates::default(),
            rooms: Mutex::default(),
        })
    }

    /// Asks a proxy's upstream in the course of an errand; returns at once. `credentials`: whether it may be shown any. `Denied`
    /// for a repository that is no proxy, `Invalid` for a question that cannot be.
    pub fn fetch(
        self: &Arc<Self>,
        proxy: &RepositoryView,
        fetch: Fetch,
        (credentials, errand): (bool, Arc<Errand>),
    ) -> Result<Box<dyn Reply>, ServiceError> {
        let expected = fetch.expect.clone();
        let plan = Plan { credentials, ..Plan::of(proxy, fetch)? };
        let (site, counts) = self.site(proxy, &plan, errand.most_for_one())?;
        let asker = Asker { upstreams: Arc::clone(self), site, plan: Arc::new(plan), expected, errand };
        Ok(Box::new(ProxyReply::start(asker, counts)))
    }

    /// The errand of a call of this plugin.
    pub fn errand(&self, plugin: &Plugin) -> Arc<Errand> {
        let (format, calls) = (&plugin.description().format, plugin.concurrency());
        let mut rooms = lock(&self.rooms);
        let room = rooms.entry(format.clone()).or_insert_with(|| errand::room(calls));
        Errand::new(Arc::clone(room), calls)
    }

    /// A call has ended. What it used is kept from now on if it ended well, and thrown away if it failed for it. Another errand
    /// when the call may go better the next time.
    pub async fn end(&self, errand: &Errand, end: End) -> Option<Arc<Errand>> {
        let Ended { used, failed, crowded } = errand.end();
        if let Some((repository, site)) = crowded.filter(|_| end != End::Well) {
            let room = errand.queue(&site).await?;
            return Some(errand.again(HashSet::new(), Some((repository, room))));
        }
        match end {
            End::Well => {
                // A call may have asked for dozens: their commits share a flush.
                let proofs = used.iter().map(|Used { key, candidate, .. }| async move {
                    if let Err(error) = self.candidates.prove(&self.store, *key, candidate).await {
                        tracing::warn!(%error, repository = %key.0, "an upstream's answer could not be kept");
                    }
                });
                futures::future::join_all(proofs).await;
                None
            }
            // Of more than one thing that may have led to it, the answers are not to blame before they are alone with it.
            End::Badly if !failed => self.throw_away(errand, used).await,
            End::Badly => {
                used.iter().for_each(|it| self.candidates.doubt(&it.candidate));
                None
            }
            End::Otherwise => None,
        }
    }

    async fn throw_away(&self, errand: &Errand, used: Vec<Used>) -> Option<Arc<Errand>> {
        let mut replaced = HashSet::new();
        for Used { key, candidate, older, ttl } in used {
            tracing::warn!(repository = %key.0, older, "what an upstream sent could not be read and is thrown away");
            self.candidates.refuse(key, &candidate, ttl).await;
            if let Some(known) = lock(&self.sites).get(&key.0) {
                known.counts.count(Outcome::Error);
            }
            if older {
                replaced.insert(key);
            }
        }
        (!replaced.is_empty()).then(|| errand.again(replaced, None))
    }

    /// What was counted of a repository's questions since this program started.
    pub fn counts(&self, repository: RepositoryId) -> CountsView {
        lock(&self.sites).get(&repository).map(|known| known.counts.view()).unwrap_or_default()
    }

    /// Keeps no longer what begins with `prefix`; how many answers that were.
    pub async fn purge(
        &self,
        repository: RepositoryId,
        prefix: &str,
    ) -> Result<u64, packhouse_store::StoreError> {
        self.negatives.purge(repository, prefix);
        self.candidates.purge(repository, prefix);
        self.store.purge_cache(repository, prefix).await
    }

    /// A repository's credentials or its upstream changed: what was given out to it is not used again.
    pub fn forget(&self, repository: RepositoryId) {
        if let Some(known) = lock(&self.sites).get_mut(&repository) {
            known.connection = 0;
        }
    }

    /// Seals credentials for this repository's upstream, and for no other.
    pub fn seal(&self, repository: RepositoryId, credentials: &Credentials) -> Result<String, SealError> {
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

    fn site(
        &self,
        proxy: &RepositoryView,
        plan: &Plan,
        room: usize,
    ) -> Result<(Arc<Site>, Arc<Counts>), ServiceError> {
        let connection = plan.policy.connection().max(1);
        let mut sites = lock(&self.sites);
        let known = sites.get(&proxy.id);
        if let Some(known) = known.filter(|known| known.connection == connection) {
            return Ok((Arc::clone(&known.site), Arc::clone(&known.counts)));
        }
        let counts = known.map_or_else(
            || Counts::new(self.named.then_some(proxy.name.as_str())),
            |known| Arc::clone(&known.counts),
        );
        let site = Arc::new(Site::new(&plan.policy, &self.addresses, (self.bounds, room))?);
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
