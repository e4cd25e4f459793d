//! A server that the host itself asks, and no repository: with the rules, the limits and the answers to challenges that upstreams of
//! proxies have, and whole answers of a bounded size.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use packhouse_config::UpstreamBounds;
use reqwest::Response;
use tokio::time::Instant;
use url::Url;

use super::authentication::CredentialProblem;
use super::client::UpstreamClient;
use super::credentials::{Credentials, UpstreamAuth};
use super::egress_policy::EgressPolicy;
use super::error::UpstreamError;
use super::redirects::{self, Redirected};
use super::request::{UpstreamRequest, same_origin};
use super::settings::ProxySettings;
use crate::boxed;

/// See the module. Its credentials go to its own origin, and to a token service there or on the host that is named with them.
pub struct Remote {
    client: UpstreamClient,
    auth: UpstreamAuth,
    patience: Duration,
}

/// What is asked of it.
#[derive(Clone, Debug)]
pub struct RemoteRequest {
    /// GET, HEAD, POST or PUT.
    pub method: Method,
    /// Whose credentials are sent only where it is at the remote's own origin.
    pub url: Url,
    /// The media types that are understood.
    pub accept: &'static str,
    /// What is sent, with its media type.
    pub body: Option<(&'static str, Bytes)>,
    /// Bytes of the answer at most.
    pub most: u64,
}

impl RemoteRequest {
    /// A request without a body.
    pub fn new(method: Method, url: Url, most: u64) -> RemoteRequest {
        RemoteRequest { method, url, accept: "*/*", body: None, most }
    }
}

/// What it answered, whatever the status.
#[derive(Clone, Debug)]
pub struct RemoteAnswer {
    /// The status.
    pub status: u16,
    /// Its header.
    pub headers: HeaderMap,
    /// All of its body.
    pub body: Bytes,
    /// The address that answered, behind redirects.
    pub url: Url,
}

impl RemoteAnswer {
    /// A header field that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why there is no answer. For people: holds no credential.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RemoteError {
    /// It declares or sends more than was asked for: the most in bytes.
    #[error("it sends more than {0} bytes")]
    TooLarge(u64),
    /// It is at an address to which no request may go, leads to one, cannot be reached, or refuses the credentials.
    #[error("{0}")]
    Failed(String),
}

impl From<UpstreamError> for RemoteError {
    fn from(error: UpstreamError) -> RemoteError {
        RemoteError::Failed(error.to_string())
    }
}

impl Remote {
    /// The server at this address. An answer may take `patience` in all. `Failed` for an address to which no request may go.
    pub fn new(
        address: &Url,
        policy: &EgressPolicy,
        bounds: UpstreamBounds,
        credentials: Option<Credentials>,
        patience: Duration,
    ) -> Result<Remote, RemoteError> {
        policy.check(address).map_err(|error| RemoteError::Failed(error.to_string()))?;
        let settings = ProxySettings::plain(address);
        let client = UpstreamClient::new(&settings, policy, bounds, 1)?;
        Ok(Remote { client, auth: UpstreamAuth::OnChallenge(credentials), patience })
    }

    /// Its answer, behind redirects and challenges.
    #[boxed]
    pub async fn ask(&self, request: RemoteRequest) -> Result<RemoteAnswer, RemoteError> {
        let late = |_| RemoteError::Failed(format!("it took longer than {} s", self.patience.as_secs()));
        tokio::time::timeout_at(Instant::now() + self.patience, self.answer(request)).await.map_err(late)?
    }

    async fn answer(&self, request: RemoteRequest) -> Result<RemoteAnswer, RemoteError> {
        let RemoteRequest { method, url, accept, body, most } = request;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some((media_type, _)) = &body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        let below_upstream = same_origin(&url, &self.client.upstream);
        let (body, asked) = (body.map(|(_, bytes)| bytes), method.clone());
        let request = UpstreamRequest { method, url, headers, body, below_upstream };
        let Redirected { response, url, problem } =
            redirects::send(&self.client, &request, &self.auth).await?;
        if let Some(problem @ CredentialProblem::Refused) = problem {
            return Err(RemoteError::Failed(problem.to_string()));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body =
            if asked == Method::HEAD { Bytes::new() } else { self.receive(response, &headers, most).await? };
        Ok(RemoteAnswer { status, headers, body, url })
    }

    /// Nothing is read of what declares too much.
    async fn receive(
        &self,
        mut response: Response,
        headers: &HeaderMap,
        most: u64,
    ) -> Result<Bytes, RemoteError> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|declared| declared > most) {
            return Err(RemoteError::TooLarge(most));
        }
        if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(RemoteError::Failed("it codes its answer, which was not asked for".to_owned()));
        }
        let late = |_| RemoteError::Failed("it sends nothing more".to_owned());
        let mut bytes = BytesMut::new();
        while let Some(chunk) = tokio::time::timeout(self.client.bounds.idle, response.chunk())
            .await
            .map_err(late)?
            .map_err(UpstreamError::of_client)?
        {
            if (bytes.len() + chunk.len()) as u64 > most {
                return Err(RemoteError::TooLarge(most));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }
}
