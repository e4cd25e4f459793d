//! A provider: what it says of itself (OpenID Connect Discovery 1.0), its keys, and how it is asked.
//!
//! What a provider says is kept for ten minutes; the sign-in settings that name it never are. Requests follow no redirect, go
//! where upstreams may be (`upstream.allow_networks`), and end after ten seconds or a mebibyte.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use quick_cache::sync::Cache;
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use packhouse_config::UpstreamNetwork;
use packhouse_config::live::Live;
use packhouse_upstream::destination_clients::DestinationClients;
use packhouse_upstream::egress_policy::{EgressPolicy, SystemLookup};
use packhouse_upstream::upstream_egress::{Destination, UpstreamEgress};

use crate::jwt::KeySet;

/// How long is believed what a provider says of itself.
const FRESH: Duration = Duration::from_secs(600);
/// How long a provider that failed is not asked again.
const PAUSE: Duration = Duration::from_secs(2);
/// For one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const LONGEST: usize = 1024 * 1024;
/// The number of providers that are remembered.
const MOST: usize = 256;
/// Keys of one provider.
const MOST_KEYS: usize = 200;

/// Why a provider cannot be used. For people: no secret, and nothing of what the provider answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

impl ProviderError {
    /// With what lies behind an error, which never holds what was sent or answered.
    pub fn of(what: &str, error: &dyn std::error::Error) -> ProviderError {
        let mut said = format!("{what}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            said = format!("{said}: {cause}");
            source = cause.source();
        }
        ProviderError(said)
    }
}

pub(super) type Request = http::Request<Vec<u8>>;
pub(super) type Response = http::Response<Vec<u8>>;

/// What a provider says of itself, as far as it counts here, and its keys.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(skip)]
    pub(crate) keys: KeySet,
}

impl Metadata {
    /// Whether a client's secret has to be sent in the body. Where the provider does not say, it is not (section 3).
    pub(super) fn takes_secret_in_body_alone(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
        let takes = |method: &str| methods.iter().any(|taken| taken == method);
        takes("client_secret_post") && !takes("client_secret_basic")
    }
}

/// A JSON Web Key Set (RFC 7517).
#[derive(Deserialize)]
struct ListedKeys {
    keys: Vec<Value>,
}

type Found = Result<Arc<Metadata>, ProviderError>;

/// What was found when a provider was asked.
#[derive(Clone)]
struct Discovery {
    asked_at: Instant,
    found: Found,
}

/// All providers.
pub struct Providers {
    policy: EgressPolicy,
    allowed: Live<Vec<UpstreamNetwork>>,
    clients: Cache<String, Arc<ProviderClient>>,
    known: Cache<String, Discovery>,
}

impl Providers {
    /// At public addresses over TLS, and in these networks with or without it.
    pub fn new(allowed: &[UpstreamNetwork]) -> Providers {
        let policy = EgressPolicy::new(allowed, Arc::new(SystemLookup));
        let (clients, known) = (Cache::new(MOST), Cache::new(MOST));
        Providers { policy, allowed: Live::new(allowed.to_vec()), clients, known }
    }

    /// Lets providers be in these networks from now on.
    pub fn allow(&self, allowed: &[UpstreamNetwork]) {
        self.policy.allow(allowed.to_vec());
        self.allowed.set(allowed.to_vec());
        self.clients.clear();
        self.known.clear();
    }

    /// Asks this provider: at its own address, and where it may lead.
    pub(super) async fn send(&self, issuer: &str, request: Request) -> Result<Response, ProviderError> {
        let client = self.client(issuer)?;
        let answered = tokio::time::timeout(PATIENCE, client.exchange(request)).await;
        answered.unwrap_or_else(|_| Err(ProviderError("it takes too long".to_owned())))
    }

    fn client(&self, issuer: &str) -> Result<Arc<ProviderClient>, ProviderError> {
        let home: Url = issuer.parse().map_err(|error| ProviderError::of("issuer", &error))?;
        self.clients.get_or_insert_with(issuer, || {
            let egress = UpstreamEgress::of(&self.policy, &home);
            let allowed = self.allowed.clone();
            Ok(Arc::new(ProviderClient { egress, allowed, clients: Default::default() }))
        })
    }

    /// Whether a provider may be at this address, as far as it shows: https, or http in an allowed network.
    pub fn check(&self, url: &Url) -> Result<(), ProviderError> {
        self.policy.check(url).map_err(|error| ProviderError(error.to_string()))?;
        check_scheme(url, &self.allowed.get())
    }

    /// What the provider says of itself, with its keys. `anew`: not what is kept, since a key was not among it.
    pub(super) async fn metadata(&self, issuer: &str, anew: bool) -> Found {
        if let Some(found) = self.kept(issuer).filter(|found| !anew || found.is_err()) {
            return found;
        }
        let found = self.discover(issuer).await;
        let discovery = Discovery { asked_at: Instant::now(), found: found.clone() };
        self.known.insert(issuer.to_owned(), discovery);
        found
    }

    fn kept(&self, issuer: &str) -> Option<Found> {
        let Discovery { asked_at, found } = self.known.get(issuer)?;
        let fresh = if found.is_ok() { FRESH } else { PAUSE };
        (asked_at.elapsed() < fresh).then_some(found)
    }

    /// What an issuer says of itself by now, and its keys.
    pub(crate) async fn discover(&self, issuer: &str) -> Found {
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let mut found: Metadata = self.get(issuer, &address, "its description").await?;
        if found.issuer != issuer {
            return Err(ProviderError("its description is of another issuer".to_owned()));
        }
        let listed: ListedKeys = self.get(issuer, &found.jwks_uri, "its list of keys").await?;
        if listed.keys.len() > MOST_KEYS {
            return Err(ProviderError("it has too many keys".to_owned()));
        }
        found.keys = KeySet::new(listed.keys);
        Ok(Arc::new(found))
    }

    /// Gets a JSON document. An answer that is none is not repeated to anybody.
    async fn get<T: DeserializeOwned>(
        &self,
        issuer: &str,
        address: &str,
        what: &str,
    ) -> Result<T, ProviderError> {
        let request = http::Request::get(address).header(ACCEPT, "application/json").body(Vec::new());
        let request = request.map_err(|_| ProviderError(format!("the address of {what} is none")))?;
        let answer = self.send(issuer, request).await?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(ProviderError(format!("{what} cannot be read: status {status}")));
        }
        serde_json::from_slice(answer.body()).map_err(|_| ProviderError(format!("{what} cannot be read")))
    }
}

/// How one provider is asked.
struct ProviderClient {
    egress: UpstreamEgress,
    allowed: Live<Vec<UpstreamNetwork>>,
    clients: DestinationClients<ProviderError>,
}

/// https, or http in an allowed network.
fn check_scheme(url: &Url, allowed: &[UpstreamNetwork]) -> Result<(), ProviderError> {
    let port = url.port_or_known_default();
    let allowed = |ip| allowed.iter().any(|network| network.holds(ip, port));
    let near = match url.host() {
        Some(Host::Ipv4(ip)) => allowed(ip.into()),
        Some(Host::Ipv6(ip)) => allowed(ip.into()),
        Some(Host::Domain(name)) => name == "localhost" && allowed([127, 0, 0, 1].into()),
        None => false,
    };
    if url.scheme() == "https" || near {
        Ok(())
    } else {
        Err(ProviderError("a provider is reached over https".to_owned()))
    }
}

impl ProviderClient {
    fn http_client(&self, destination: Destination) -> Result<Client, ProviderError> {
        self.clients.get_or_build(destination, || {
            self.egress
                .client(destination, |builder| builder.connect_timeout(PATIENCE))
                .map_err(|error| ProviderError::of("no HTTP client", &error))
        })
    }

    async fn exchange(&self, request: Request) -> Result<Response, ProviderError> {
        let wrong = |error: reqwest::Error| ProviderError::of("it cannot be reached", &error.without_url());
        let (parts, body) = request.into_parts();
        let url: Url = parts.uri.to_string().parse().map_err(|error| ProviderError::of("address", &error))?;
        let destination = self.egress.judge(&url).await.map_err(|error| ProviderError(error.to_string()))?;
        check_scheme(&url, &self.allowed.get())?;
        let client = self.http_client(destination)?;
        let asked = client.request(parts.method, url).headers(parts.headers).body(body);
        let mut answer = asked.send().await.map_err(wrong)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(wrong)? {
            if bytes.len() + chunk.len() > LONGEST {
                return Err(ProviderError("its answer is too long".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        let mut response = Response::new(bytes);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}
