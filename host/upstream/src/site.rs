//! One proxy's upstream: its client, its places, its health, and what is counted of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::Counter;
use reqwest::{Certificate, Client, Proxy, redirect};
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;
use utoipa::ToSchema;

use super::address::Addresses;
use packhouse_config::UpstreamBounds;

use super::breaker::Breaker;
use super::credentials::Keyring;
use super::policy::Policy;
use super::reach::{Reach, Way};
use super::trouble::Trouble;

/// Connections that are kept for the next request.
const IDLE: usize = 32;

/// See the module.
pub struct Site {
    /// Where it is.
    pub upstream: Url,
    /// Where it is, and may lead.
    pub reach: Reach,
    policy: Policy,
    /// One for each way, made when it is first gone.
    clients: [OnceLock<Result<Client, Trouble>>; 3],
    pub bounds: UpstreamBounds,
    pub breaker: Breaker,
    pub keyring: Keyring,
    /// For calls that wait for it: each holds an instance of its plugin.
    pub room: Arc<Semaphore>,
    places: Semaphore,
    /// Held by whoever makes room in the cache.
    pub shrinking: tokio::sync::Mutex<()>,
}

impl Site {
    /// Nothing is connected yet; `room` is how many calls may wait for it. `Unavailable` when the settings make no sense.
    pub fn new(
        policy: &Policy,
        addresses: &Addresses,
        (bounds, room): (UpstreamBounds, usize),
    ) -> Result<Site, Trouble> {
        if let Some(address) = &policy.egress_proxy {
            let url: Url =
                address.parse().map_err(|error| Trouble::Unavailable(format!("egress_proxy: {error}")))?;
            addresses.check(&url).map_err(|error| Trouble::Refused(error.to_string()))?;
        }
        let site = Site {
            upstream: policy.upstream.clone(),
            reach: match &policy.egress_proxy {
                // Its name is the proxy's to look up.
                Some(_) => Reach::of(addresses, &policy.upstream).not_looked_up(),
                None => Reach::of(addresses, &policy.upstream),
            },
            policy: policy.clone(),
            clients: Default::default(),
            bounds,
            breaker: Breaker::default(),
            keyring: Keyring::default(),
            room: Arc::new(Semaphore::new(room)),
            places: Semaphore::new(bounds.concurrency),
            shrinking: tokio::sync::Mutex::default(),
        };
        site.client(Way::Home)?;
        Ok(site)
    }

    /// For requests that go this way. It follows no redirect by itself.
    pub fn client(&self, way: Way) -> Result<&Client, Trouble> {
        let [home, beside, public] = &self.clients;
        let known = match way {
            Way::Home => home,
            Way::Beside => beside,
            Way::Public => public,
        };
        known
            .get_or_init(|| client(&self.policy, &self.reach, way, self.bounds))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Waits for a place among the requests that are under way.
    pub async fn place(&self) -> Result<SemaphorePermit<'_>, Trouble> {
        let place = tokio::time::timeout(self.bounds.idle, self.places.acquire()).await;
        let busy = || Trouble::Unavailable("too many requests to the upstream are under way".to_owned());
        place.ok().and_then(Result::ok).ok_or_else(busy)
    }
}

fn client(policy: &Policy, reach: &Reach, way: Way, bounds: UpstreamBounds) -> Result<Client, Trouble> {
    let wrong = |what: &str, error: reqwest::Error| Trouble::Unavailable(format!("{what}: {error}"));
    let build = |system: bool| -> Result<Client, Trouble> {
        let mut builder = Client::builder()
            .user_agent(concat!("Packhouse/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(bounds.connect)
            .pool_max_idle_per_host(IDLE);
        if let Some(address) = &policy.egress_proxy {
            let url: Url =
                address.parse().map_err(|error| Trouble::Unavailable(format!("egress_proxy: {error}")))?;
            // The one name that is looked up here is then the proxy's.
            let proxy = reach.with_home(&url);
            builder = builder.dns_resolver(proxy.resolver(Way::Home));
            builder = builder.proxy(Proxy::all(url).map_err(|error| wrong("egress_proxy", error))?);
        } else {
            builder = builder.dns_resolver(reach.resolver(way));
        }
        let own = policy.ca_pem.as_deref().map(|pem| Certificate::from_pem_bundle(pem.as_bytes()));
        let own = own.transpose().map_err(|error| wrong("ca_pem", error))?.unwrap_or_default();
        builder = if system { builder.tls_certs_merge(own) } else { builder.tls_certs_only(own) };
        builder.build().map_err(|error| wrong("the client", error))
    };
    // A system without certificates of its own can still reach what is signed by the repository's, or not signed at all.
    build(true).or_else(|_| build(false))
}

/// What became of requests to a proxy's upstream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// A kept answer, fresh or found to be still right.
    Hit,
    /// The upstream's.
    Miss,
    /// A kept answer that is older than it should be.
    Stale,
    /// None.
    Error,
}

/// Counts them for one repository since this program started.
pub(crate) struct Counts {
    own: [AtomicU64; 4],
    metrics: [Counter; 4],
}

/// The counts as the API shows them.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct CountsView {
    /// Answered from the cache.
    hits: u64,
    /// Answered by the upstream.
    misses: u64,
    /// Answered with a copy older than it should be.
    stale: u64,
    /// Not answered.
    errors: u64,
}

impl Counts {
    /// Nothing is counted yet. `repository` is its name in the metrics; without one, all repositories are counted together there.
    pub(crate) fn new(repository: Option<&str>) -> Arc<Counts> {
        let metrics = ["hit", "miss", "stale", "error"].map(|result| match repository {
            Some(repository) => metrics::counter!("packhouse_upstream_answers_total", "repository" => repository.to_owned(), "result" => result),
            None => metrics::counter!("packhouse_upstream_answers_total", "result" => result),
        });
        Arc::new(Counts { own: Default::default(), metrics })
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        let at = outcome as usize;
        if let (Some(own), Some(metric)) = (self.own.get(at), self.metrics.get(at)) {
            own.fetch_add(1, Ordering::Relaxed);
            metric.increment(1);
        }
    }

    pub(crate) fn view(&self) -> CountsView {
        let [hits, misses, stale, errors] = self.own.each_ref().map(|count| count.load(Ordering::Relaxed));
        CountsView { hits, misses, stale, errors }
    }
}
