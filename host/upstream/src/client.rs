//! The HTTP client of one proxy's upstream, with its limits, circuit breaker and credentials.

use std::sync::Arc;

use packhouse_config::UpstreamBounds;
use reqwest::{Certificate, Client, Proxy, redirect};
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

use super::circuit_breaker::CircuitBreaker;
use super::destination_clients::DestinationClients;
use super::egress_policy::EgressPolicy;
use super::error::UpstreamError;
use super::health::UpstreamHealth;
use super::keyring::Keyring;
use super::settings::ProxySettings;
use super::upstream_egress::{Destination, UpstreamEgress};

/// Maximum number of idle connections to one host.
const IDLE: usize = 32;

/// The HTTP client of one proxy's upstream; see the module.
pub(crate) struct UpstreamClient {
    pub upstream: Url,
    /// Rules for the destinations of requests.
    pub egress: UpstreamEgress,
    settings: ProxySettings,
    clients: DestinationClients<UpstreamError>,
    pub bounds: UpstreamBounds,
    pub breaker: CircuitBreaker,
    pub health: UpstreamHealth,
    pub keyring: Keyring,
    /// Limits the calls that wait for this upstream, because each holds an instance of its plugin.
    pub wait_slots: Arc<Semaphore>,
    request_slots: Semaphore,
    /// Locked while the cache is shrunk to its limit.
    pub shrinking: tokio::sync::Mutex<()>,
}

impl UpstreamClient {
    /// Builds the client without connecting. At most `max_waiting` calls may wait for it.
    /// `Unavailable` if the settings are invalid, `Refused` if the egress policy forbids the
    /// `egress_proxy`.
    pub(crate) fn new(
        settings: &ProxySettings,
        policy: &EgressPolicy,
        bounds: UpstreamBounds,
        max_waiting: usize,
    ) -> Result<UpstreamClient, UpstreamError> {
        let bounds = settings.bounds(bounds);
        if let Some(address) = &settings.egress_proxy {
            policy
                .check(&egress_proxy_url(address)?)
                .map_err(|error| UpstreamError::Refused(error.to_string()))?;
        }
        let upstream_client = UpstreamClient {
            upstream: settings.upstream.clone(),
            egress: match &settings.egress_proxy {
                // The egress proxy resolves the upstream's name.
                Some(_) => UpstreamEgress::of(policy, &settings.upstream).without_lookup(),
                None => UpstreamEgress::of(policy, &settings.upstream),
            },
            settings: settings.clone(),
            clients: DestinationClients::default(),
            bounds,
            breaker: CircuitBreaker::default(),
            health: UpstreamHealth::default(),
            keyring: Keyring::default(),
            wait_slots: Arc::new(Semaphore::new(max_waiting)),
            request_slots: Semaphore::new(bounds.concurrency),
            shrinking: tokio::sync::Mutex::default(),
        };
        upstream_client.http_client(Destination::Upstream)?;
        Ok(upstream_client)
    }

    /// Returns the client for requests to this kind of destination. It does not follow redirects.
    pub(crate) fn http_client(&self, destination: Destination) -> Result<Client, UpstreamError> {
        let build = || build_client(&self.settings, &self.egress, destination, self.bounds);
        self.clients.get_or_build(destination, build)
    }

    /// Waits for a slot for a concurrent request. `Unavailable` if none becomes free within the
    /// idle limit.
    pub(crate) async fn request_slot(&self) -> Result<SemaphorePermit<'_>, UpstreamError> {
        let slot = tokio::time::timeout(self.bounds.idle, self.request_slots.acquire()).await;
        let busy = || UpstreamError::Unavailable("too many concurrent requests to the upstream".to_owned());
        slot.ok().and_then(Result::ok).ok_or_else(busy)
    }
}

fn egress_proxy_url(address: &str) -> Result<Url, UpstreamError> {
    address.parse().map_err(|error| UpstreamError::Unavailable(format!("egress_proxy: {error}")))
}

fn build_client(
    settings: &ProxySettings,
    egress: &UpstreamEgress,
    destination: Destination,
    bounds: UpstreamBounds,
) -> Result<Client, UpstreamError> {
    let wrong = |what: &str, error: reqwest::Error| UpstreamError::Unavailable(format!("{what}: {error}"));
    let build = |system_certificates: bool| -> Result<Client, UpstreamError> {
        let mut builder = Client::builder()
            .user_agent(concat!("Packhouse/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(bounds.connect)
            .pool_max_idle_per_host(IDLE);
        if let Some(address) = &settings.egress_proxy {
            let url = egress_proxy_url(address)?;
            // Only the egress proxy's name is resolved here.
            let proxy_egress = egress.for_address(&url);
            builder = builder.dns_resolver(proxy_egress.resolver(Destination::Upstream));
            builder = builder.proxy(Proxy::all(url).map_err(|error| wrong("egress_proxy", error))?);
        } else {
            builder = builder.dns_resolver(egress.resolver(destination));
        }
        let own = settings.ca_pem.as_deref().map(|pem| Certificate::from_pem_bundle(pem.as_bytes()));
        let own = own.transpose().map_err(|error| wrong("ca_pem", error))?.unwrap_or_default();
        builder =
            if system_certificates { builder.tls_certs_merge(own) } else { builder.tls_certs_only(own) };
        builder.build().map_err(|error| wrong("the client", error))
    };
    // Without system certificates, upstreams with a certificate signed by `ca_pem` and plain HTTP
    // upstreams still work.
    build(true).or_else(|_| build(false))
}
