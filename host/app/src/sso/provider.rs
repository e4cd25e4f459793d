//! Sign-in providers: their metadata (OpenID Connect Discovery 1.0), their keys, and requests to
//! them.
//!
//! The server caches metadata for ten minutes. It does not cache the sign-in settings, which name
//! the provider. It does not follow redirects, and sends requests only to allowed addresses
//! (`upstream.allow_networks`). Each request has a limit of ten seconds and one mebibyte.

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

const FRESH: Duration = Duration::from_secs(600);
/// Pause before the next request to a provider that failed.
const PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Maximum number of cached providers.
const MOST: usize = 256;
/// Maximum number of keys of one provider.
const MOST_KEYS: usize = 200;

/// Reason why the server cannot use a provider. The text is for people. It contains no secret and
/// nothing from the provider's response.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

impl ProviderError {
    /// Creates an error with its chain of causes. The causes never contain the request or the
    /// response.
    pub fn of(what: &str, error: &dyn std::error::Error) -> ProviderError {
        let mut message = format!("{what}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        ProviderError(message)
    }
}

pub(super) type Request = http::Request<Vec<u8>>;
pub(super) type Response = http::Response<Vec<u8>>;

/// The used parts of a provider's metadata, and the provider's keys.
#[derive(Deserialize)]
pub(crate) struct ProviderMetadata {
    issuer: String,
    jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    #[serde(skip)]
    pub(crate) keys: KeySet,
}

impl ProviderMetadata {
    /// Reports whether the client secret must be part of the body. If the provider states no
    /// method, it must not (section 3).
    pub(super) fn takes_secret_in_body_alone(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
        let takes = |method: &str| methods.iter().any(|taken| taken == method);
        takes("client_secret_post") && !takes("client_secret_basic")
    }

    /// Reports whether the provider lists this scope.
    pub(super) fn lists_scope(&self, scope: &str) -> bool {
        self.scopes_supported.as_deref().unwrap_or_default().iter().any(|listed| listed == scope)
    }
}

/// A JSON Web Key Set (RFC 7517).
#[derive(Deserialize)]
struct ListedKeys {
    keys: Vec<Value>,
}

type DiscoveryResult = Result<Arc<ProviderMetadata>, ProviderError>;

#[derive(Clone)]
struct Discovery {
    at: Instant,
    found: DiscoveryResult,
}

pub struct Providers {
    policy: EgressPolicy,
    allowed: Live<Vec<UpstreamNetwork>>,
    clients: Cache<String, Arc<ProviderClient>>,
    known: Cache<String, Discovery>,
}

impl Providers {
    /// Creates the client. Providers may have public addresses with TLS, and addresses in the
    /// allowed networks with or without TLS.
    pub fn new(allowed: &[UpstreamNetwork]) -> Providers {
        let policy = EgressPolicy::new(allowed, Arc::new(SystemLookup));
        let (clients, known) = (Cache::new(MOST), Cache::new(MOST));
        Providers { policy, allowed: Live::new(allowed.to_vec()), clients, known }
    }

    /// Replaces the networks in which providers are allowed.
    pub fn allow(&self, allowed: &[UpstreamNetwork]) {
        self.policy.allow(allowed.to_vec());
        self.allowed.set(allowed.to_vec());
        self.clients.clear();
        self.known.clear();
    }

    /// Sends a request for this provider, to its own address or to one that its metadata names.
    pub(super) async fn send(&self, issuer: &str, request: Request) -> Result<Response, ProviderError> {
        let client = self.client(issuer)?;
        let answered = tokio::time::timeout(PATIENCE, client.exchange(request)).await;
        answered.unwrap_or_else(|_| Err(ProviderError("it did not answer in time".to_owned())))
    }

    fn client(&self, issuer: &str) -> Result<Arc<ProviderClient>, ProviderError> {
        let home: Url = issuer.parse().map_err(|error| ProviderError::of("issuer", &error))?;
        self.clients.get_or_insert_with(issuer, || {
            let egress = UpstreamEgress::of(&self.policy, &home);
            let allowed = self.allowed.clone();
            Ok(Arc::new(ProviderClient { egress, allowed, clients: Default::default() }))
        })
    }

    /// Checks that a provider may have this address: https, or http in an allowed network. Does not
    /// resolve names.
    pub fn check(&self, url: &Url) -> Result<(), ProviderError> {
        self.policy.check(url).map_err(|error| ProviderError(error.to_string()))?;
        check_scheme(url, &self.allowed.get())
    }

    /// Returns the provider's metadata with its keys. `fresh` skips cached metadata, for callers
    /// that did not find a key in it.
    pub(super) async fn metadata(&self, issuer: &str, fresh: bool) -> DiscoveryResult {
        if let Some(found) = self.cached(issuer).filter(|found| !fresh || found.is_err()) {
            return found;
        }
        let found = self.discover(issuer).await;
        let discovery = Discovery { at: Instant::now(), found: found.clone() };
        self.known.insert(issuer.to_owned(), discovery);
        found
    }

    fn cached(&self, issuer: &str) -> Option<DiscoveryResult> {
        let Discovery { at, found } = self.known.get(issuer)?;
        let lifetime = if found.is_ok() { FRESH } else { PAUSE };
        (at.elapsed() < lifetime).then_some(found)
    }

    /// Fetches an issuer's metadata and keys.
    pub(crate) async fn discover(&self, issuer: &str) -> DiscoveryResult {
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let mut found: ProviderMetadata = self.get(issuer, &address, "its description").await?;
        if found.issuer != issuer {
            return Err(ProviderError("its description names another issuer".to_owned()));
        }
        let listed: ListedKeys = self.get(issuer, &found.jwks_uri, "its list of keys").await?;
        if listed.keys.len() > MOST_KEYS {
            return Err(ProviderError("it has too many keys".to_owned()));
        }
        found.keys = KeySet::new(listed.keys);
        Ok(Arc::new(found))
    }

    /// Fetches a JSON document. If the response cannot be parsed, the error does not include it.
    async fn get<T: DeserializeOwned>(
        &self,
        issuer: &str,
        address: &str,
        what: &str,
    ) -> Result<T, ProviderError> {
        let request = http::Request::get(address).header(ACCEPT, "application/json").body(Vec::new());
        let request = request.map_err(|_| ProviderError(format!("the address of {what} is invalid")))?;
        let answer = self.send(issuer, request).await?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(ProviderError(format!("{what} cannot be read: status {status}")));
        }
        serde_json::from_slice(answer.body()).map_err(|_| ProviderError(format!("{what} cannot be read")))
    }
}

/// HTTP clients for one provider.
struct ProviderClient {
    egress: UpstreamEgress,
    allowed: Live<Vec<UpstreamNetwork>>,
    clients: DestinationClients<ProviderError>,
}

/// Checks that the address begins with https, or with http and is in an allowed network.
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
        Err(ProviderError("its address must begin with https://".to_owned()))
    }
}

impl ProviderClient {
    fn http_client(&self, destination: Destination) -> Result<Client, ProviderError> {
        self.clients.get_or_build(destination, || {
            self.egress
                .client(destination, |builder| builder.connect_timeout(PATIENCE))
                .map_err(|error| ProviderError::of("cannot create an HTTP client", &error))
        })
    }

    async fn exchange(&self, request: Request) -> Result<Response, ProviderError> {
        let wrong = |error: reqwest::Error| ProviderError::of("it cannot be reached", &error.without_url());
        let (parts, body) = request.into_parts();
        let url: Url = parts.uri.to_string().parse().map_err(|error| ProviderError::of("address", &error))?;
        let destination = self.egress.judge(&url).await.map_err(|error| ProviderError(error.to_string()))?;
        check_scheme(&url, &self.allowed.get())?;
        let client = self.http_client(destination)?;
        let outgoing = client.request(parts.method, url).headers(parts.headers).body(body);
        let mut answer = outgoing.send().await.map_err(wrong)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(wrong)? {
            if bytes.len() + chunk.len() > LONGEST {
                return Err(ProviderError("its response is too long".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        let mut response = Response::new(bytes);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}
