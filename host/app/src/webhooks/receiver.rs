//! Requests to the receivers of webhooks. A receiver must be on the public internet or in a network
//! that the operator allows, and each connection checks this. The server does not follow redirects,
//! and reads only as much of a response as it stores.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quick_cache::sync::Cache;
use reqwest::Client;
use reqwest::header::HeaderMap;
use url::Url;

use packhouse_config::UpstreamNetwork;
use packhouse_upstream::egress_policy::{EgressPolicy, SystemLookup};
use packhouse_upstream::upstream_egress::{Destination, UpstreamEgress};

/// Maximum size of the part of a response that is read and stored, in bytes.
const STORED_BYTES: usize = 1024;
/// Maximum number of receivers whose connections are kept open.
const MOST: usize = 256;
/// Maximum number of idle connections to one receiver.
const IDLE: usize = 4;

/// Reason why a delivery failed, as a text for people.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReceiverError(pub String);

pub(super) struct ReceiverResponse {
    pub(super) status: u16,
    pub(super) beginning: String,
}

/// HTTP clients for the receivers of webhooks.
pub struct Receivers {
    policy: EgressPolicy,
    clients: Cache<String, Arc<ReceiverClient>>,
}

struct ReceiverClient {
    egress: UpstreamEgress,
    http: Client,
}

impl Receivers {
    /// Creates the clients. Receivers may have public addresses, and addresses in the allowed
    /// networks.
    pub fn new(allowed: &[UpstreamNetwork]) -> Receivers {
        Receivers { policy: EgressPolicy::new(allowed, Arc::new(SystemLookup)), clients: Cache::new(MOST) }
    }

    /// Replaces the networks in which receivers are allowed. Does not use existing connections
    /// again.
    pub fn allow(&self, allowed: &[UpstreamNetwork]) {
        self.policy.allow(allowed.to_vec());
        self.clients.clear();
    }

    /// Checks that a receiver may have this address. Does not resolve names.
    pub fn check(&self, url: &Url) -> Result<(), ReceiverError> {
        self.policy.check(url).map_err(|error| ReceiverError(error.to_string()))
    }

    /// Sends a delivery and reads the start of the response. Both together must end within
    /// `patience`.
    pub(super) async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        patience: Duration,
    ) -> Result<ReceiverResponse, ReceiverError> {
        let exchanged = tokio::time::timeout(patience, self.exchange(url, headers, body)).await;
        exchanged.unwrap_or_else(|_| Err(ReceiverError("it did not answer in time".to_owned())))
    }

    async fn exchange(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<ReceiverResponse, ReceiverError> {
        let address: Url = url.parse().map_err(|error| ReceiverError(format!("the address: {error}")))?;
        let client = self.client(url, &address)?;
        client.egress.judge(&address).await.map_err(|error| ReceiverError(error.to_string()))?;
        let sent = client.http.post(address).headers(headers).body(body).send().await;
        let mut answer = sent.map_err(|error| error_with_causes(&error.without_url()))?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while bytes.len() < STORED_BYTES
            && let Some(chunk) =
                answer.chunk().await.map_err(|error| error_with_causes(&error.without_url()))?
        {
            bytes.extend(chunk.iter().take(STORED_BYTES - bytes.len()));
        }
        Ok(ReceiverResponse { status, beginning: text(&bytes) })
    }

    fn client(&self, url: &str, address: &Url) -> Result<Arc<ReceiverClient>, ReceiverError> {
        self.clients.get_or_insert_with(url, || {
            let egress = UpstreamEgress::of(&self.policy, address);
            let http = egress.client(Destination::Upstream, |builder| builder.pool_max_idle_per_host(IDLE));
            let http = http.map_err(|error| error_with_causes(&error))?;
            Ok(Arc::new(ReceiverClient { egress, http }))
        })
    }
}

/// Creates an error with its chain of causes. The causes never contain the request.
fn error_with_causes(error: &dyn std::error::Error) -> ReceiverError {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    ReceiverError(message)
}

/// Converts bytes to a text that every database accepts.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &str, url: &str) -> bool {
        let networks = packhouse_config::upstream_networks(allowed).unwrap();
        Receivers::new(&networks).check(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn an_address_is_public_or_allowed() {
        for url in ["https://1.1.1.1/hook", "http://hooks.test/", "https://hooks.test:8443/x"] {
            assert!(check("", url), "{url}");
        }
        for url in ["http://127.0.0.1/", "http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/"] {
            assert!(!check("", url), "{url}");
        }
        assert!(check("127.0.0.0/8", "http://127.0.0.1:9/"));
        assert!(!check("127.0.0.0/8", "http://10.0.0.1/"));
    }

    #[tokio::test]
    async fn an_address_that_is_not_allowed_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receivers = Receivers::new(&[]);
        for url in [format!("http://127.0.0.1:{port}/"), format!("http://localhost:{port}/")] {
            let sent = receivers.send(&url, HeaderMap::new(), Bytes::new(), Duration::from_secs(5)).await;
            assert!(sent.is_err(), "{url}");
        }
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "the client connected to a loopback address");
    }

    #[test]
    fn a_response_that_is_not_text_becomes_text() {
        assert_eq!(text(b"a\0b\xff"), "a\u{fffd}b\u{fffd}");
    }
}
