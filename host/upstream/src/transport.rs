//! Sends one request to an address that the egress rules allow.

use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use reqwest::Response;
use url::Url;

use super::client::UpstreamClient;
use super::error::UpstreamError;
use super::request::UpstreamRequest;

/// Sends a request once and returns when the head of the response has arrived. `Refused` for a
/// forbidden address, `Unavailable` if no response arrives in time.
pub(crate) async fn send(
    client: &UpstreamClient,
    request: &UpstreamRequest,
    method: &Method,
    url: &Url,
    authorization: Option<HeaderValue>,
) -> Result<Response, UpstreamError> {
    let destination =
        client.egress.judge(url).await.map_err(|error| UpstreamError::Refused(error.to_string()))?;
    let http_client = client.http_client(destination)?;
    let mut builder = http_client.request(method.clone(), url.clone()).headers(request.headers.clone());
    if let Some(body) = request.body.clone().filter(|_| matches!(*method, Method::POST | Method::PUT)) {
        builder = builder.body(body);
    }
    if let Some(mut authorization) = authorization {
        authorization.set_sensitive(true);
        builder = builder.header(AUTHORIZATION, authorization);
    }
    let sent = tokio::time::timeout(client.bounds.connect + client.bounds.idle, builder.send()).await;
    let late = |_| UpstreamError::Unavailable("the upstream did not respond in time".to_owned());
    sent.map_err(late)?.map_err(UpstreamError::of_client)
}
