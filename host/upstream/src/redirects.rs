//! Sends a request and follows a limited number of redirects. Every address passes the same checks
//! as the first.

use http::header::LOCATION;
use http::{Method, StatusCode};
use reqwest::Response;
use url::Url;

use super::authentication::{self, AuthenticatedResponse, CredentialProblem};
use super::client::UpstreamClient;
use super::credentials::UpstreamAuth;
use super::error::UpstreamError;
use super::request::{UpstreamRequest, same_origin};
use super::transport;

const REDIRECTS: usize = 5;

/// A response after following redirects.
pub(crate) struct Redirected {
    /// The response, whose body has not been read.
    pub response: Response,
    /// The address that sent it.
    pub url: Url,
    /// A problem with the upstream's credentials at one of the addresses.
    pub problem: Option<CredentialProblem>,
}

/// Sends a request and follows redirects. `Refused` for a forbidden address.
pub(crate) async fn send(
    client: &UpstreamClient,
    request: &UpstreamRequest,
    auth: &UpstreamAuth,
) -> Result<Redirected, UpstreamError> {
    let (mut url, mut method) = (request.url.clone(), request.method.clone());
    let mut problem = None;
    // Credentials are no longer sent after a redirect has left the upstream's origin, even if a
    // later redirect leads back.
    let mut at_upstream = request.below_upstream && same_origin(&url, &client.upstream);
    for _ in 0..=REDIRECTS {
        let response = if at_upstream {
            let authenticated = authentication::send(client, request, &url, auth).await?;
            let AuthenticatedResponse { response, problem: of_this } = authenticated;
            problem = of_this.or(problem);
            response
        } else {
            transport::send(client, request, &method, &url, None).await?
        };
        let Some(next) = redirect(&response, &url)? else {
            return Ok(Redirected { response, url, problem });
        };
        if response.status() == StatusCode::SEE_OTHER && method != Method::HEAD {
            method = Method::GET;
        }
        at_upstream = at_upstream && same_origin(&next, &client.upstream);
        url = next;
    }
    Err(UpstreamError::Unavailable(format!("the upstream redirects more than {REDIRECTS} times")))
}

fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, UpstreamError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let nowhere =
        || UpstreamError::Unavailable("the upstream sent a redirect without a valid address".to_owned());
    let mut next = from.join(location.ok_or_else(nowhere)?).map_err(|_| nowhere())?;
    next.set_fragment(None);
    // A user or password in a redirect is a credential that this server must not use.
    let plain = next.username().is_empty() && next.password().is_none();
    if !plain || (from.scheme() == "https" && next.scheme() == "http") {
        let why = "the upstream redirects to a less secure address".to_owned();
        return Err(UpstreamError::Refused(why));
    }
    Ok(Some(next))
}
