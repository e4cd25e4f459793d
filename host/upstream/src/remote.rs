//! A server that the host queries for itself, not for a repository. The same rules, limits and
//! challenge handling as for proxies' upstreams apply. Responses are read completely, up to a size
//! limit.

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

/// A server that the host queries for itself. Its credentials are sent only to its own origin and
/// to a token service. The token service must be there, or at the host configured with them.
pub struct Remote {
    client: UpstreamClient,
    auth: UpstreamAuth,
    patience: Duration,
}

/// A request to a remote.
#[derive(Clone, Debug)]
pub struct RemoteRequest {
    /// GET, HEAD, POST or PUT.
    pub method: Method,
    /// Address of the request. Credentials are sent only if it has the remote's own origin.
    pub url: Url,
    pub accept: &'static str,
    /// Body and its media type.
    pub body: Option<(&'static str, Bytes)>,
    /// Maximum size of the response, in bytes.
    pub most: u64,
}

impl RemoteRequest {
    /// Creates a request without a body.
    pub fn new(method: Method, url: Url, most: u64) -> RemoteRequest {
        RemoteRequest { method, url, accept: "*/*", body: None, most }
    }
}

/// A response with any status.
#[derive(Clone, Debug)]
pub struct RemoteAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The address that answered, after redirects.
    pub url: Url,
}

impl RemoteAnswer {
    /// Returns a header field, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Reason why a request got no response, for people. It contains no credential.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RemoteError {
    /// The response exceeds the maximum size, which is given in bytes.
    #[error("the response exceeds {0} bytes")]
    TooLarge(u64),
    /// The address is forbidden or leads to a forbidden one, the server cannot be reached, or it
    /// refuses the credentials.
    #[error("{0}")]
    Failed(String),
}

impl From<UpstreamError> for RemoteError {
    fn from(error: UpstreamError) -> RemoteError {
        RemoteError::Failed(error.to_string())
    }
}

impl Remote {
    /// Creates a remote at this address. `patience` limits the time of a whole response. `Failed`
    /// for a forbidden address.
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

    /// Sends a request and returns the response after redirects and challenges.
    #[boxed]
    pub async fn ask(&self, request: RemoteRequest) -> Result<RemoteAnswer, RemoteError> {
        let late =
            |_| RemoteError::Failed(format!("the response took longer than {} s", self.patience.as_secs()));
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
        let (body, sent_method) = (body.map(|(_, bytes)| bytes), method.clone());
        let request = UpstreamRequest { method, url, headers, body, below_upstream };
        let Redirected { response, url, problem } =
            redirects::send(&self.client, &request, &self.auth).await?;
        if let Some(problem @ CredentialProblem::Refused) = problem {
            return Err(RemoteError::Failed(problem.to_string()));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = if sent_method == Method::HEAD {
            Bytes::new()
        } else {
            self.receive(response, &headers, most).await?
        };
        Ok(RemoteAnswer { status, headers, body, url })
    }

    /// Receives a body. If the declared length is too large, reads nothing.
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
            return Err(RemoteError::Failed(
                "the response has a content coding that was not requested".to_owned(),
            ));
        }
        let late = |_| RemoteError::Failed("the server stopped sending".to_owned());
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
