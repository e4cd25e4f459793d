//! Sending to the addresses of hooks: those on the public internet, and in the networks that the operator allows, judged where the
//! connection is made. No redirect is followed, and of an answer no more is read than is kept.

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

/// Bytes of an answer that are read and kept.
const KEPT: usize = 1024;
/// Addresses whose connections are remembered.
const MOST: usize = 256;
/// Idle connections to one hook.
const IDLE: usize = 4;

/// Why a hook could not be told, for people.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReceiverError(pub String);

/// What a hook answered.
pub(super) struct Answered {
    pub(super) status: u16,
    /// How its body began.
    pub(super) beginning: String,
}

/// The addresses of hooks.
pub struct Receivers {
    policy: EgressPolicy,
    clients: Cache<String, Arc<ReceiverClient>>,
}

struct ReceiverClient {
    egress: UpstreamEgress,
    http: Client,
}

impl Receivers {
    /// At public addresses, and in these networks.
    pub fn new(allowed: &[UpstreamNetwork]) -> Receivers {
        Receivers { policy: EgressPolicy::new(allowed, Arc::new(SystemLookup)), clients: Cache::new(MOST) }
    }

    /// Lets hooks be in these networks from now on. What is connected already is not used again.
    pub fn allow(&self, allowed: &[UpstreamNetwork]) {
        self.policy.allow(allowed.to_vec());
        self.clients.clear();
    }

    /// Whether a hook may be at this address, as far as it shows before its name is looked up.
    pub fn check(&self, url: &Url) -> Result<(), ReceiverError> {
        self.policy.check(url).map_err(|error| ReceiverError(error.to_string()))
    }

    /// Sends this and reads how the answer begins, all within `patience`.
    pub(super) async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        patience: Duration,
    ) -> Result<Answered, ReceiverError> {
        let exchanged = tokio::time::timeout(patience, self.exchange(url, headers, body)).await;
        exchanged.unwrap_or_else(|_| Err(ReceiverError("it takes too long".to_owned())))
    }

    async fn exchange(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<Answered, ReceiverError> {
        let address: Url = url.parse().map_err(|error| ReceiverError(format!("the address: {error}")))?;
        let client = self.client(url, &address)?;
        client.egress.judge(&address).await.map_err(|error| ReceiverError(error.to_string()))?;
        let sent = client.http.post(address).headers(headers).body(body).send().await;
        let mut answer = sent.map_err(|error| told(&error.without_url()))?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while bytes.len() < KEPT
            && let Some(chunk) = answer.chunk().await.map_err(|error| told(&error.without_url()))?
        {
            bytes.extend(chunk.iter().take(KEPT - bytes.len()));
        }
        Ok(Answered { status, beginning: text(&bytes) })
    }

    fn client(&self, url: &str, address: &Url) -> Result<Arc<ReceiverClient>, ReceiverError> {
        self.clients.get_or_insert_with(url, || {
            let egress = UpstreamEgress::of(&self.policy, address);
            let http = egress.client(Destination::Upstream, |builder| builder.pool_max_idle_per_host(IDLE));
            let http = http.map_err(|error| told(&error))?;
            Ok(Arc::new(ReceiverClient { egress, http }))
        })
    }
}

/// An error with what lies behind it, which never holds what was sent.
fn told(error: &dyn std::error::Error) -> ReceiverError {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        said = format!("{said}: {cause}");
        source = cause.source();
    }
    ReceiverError(said)
}

/// Bytes as text that any database takes.
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
        assert!(accepted.is_err(), "somebody connected");
    }

    #[test]
    fn an_answer_that_is_no_text_is_made_one() {
        assert_eq!(text(b"a\0b\xff"), "a\u{fffd}b\u{fffd}");
    }
}
