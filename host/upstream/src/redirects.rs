//! Sends a request and follows as many redirects as are allowed. Each address is judged like the first.

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

/// The number of redirects that are followed.
const REDIRECTS: usize = 5;

/// A response behind redirects.
pub(crate) struct Redirected {
    /// Its head is here.
    pub response: Response,
    /// The address that sent it.
    pub url: Url,
    /// What became of the upstream's credentials on the way, where that is a problem.
    pub problem: Option<CredentialProblem>,
}

/// Sends a request and follows redirects. `Refused` for an address to which no request may go.
pub(crate) async fn send(
    client: &UpstreamClient,
    request: &UpstreamRequest,
    auth: &UpstreamAuth,
) -> Result<Redirected, UpstreamError> {
    let (mut url, mut method) = (request.url.clone(), request.method.clone());
    let mut problem = None;
    // Credentials are no longer sent once a redirect has left the upstream's origin, even if a later one leads back.
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
    let nowhere = || UpstreamError::Unavailable("the upstream redirects to no address".to_owned());
    let mut next = from.join(location.ok_or_else(nowhere)?).map_err(|_| nowhere())?;
    next.set_fragment(None);
    // A user or password in such an address is a credential, and not one of ours.
    let plain = next.username().is_empty() && next.password().is_none();
    if !plain || (from.scheme() == "https" && next.scheme() == "http") {
        let why = "the upstream redirects to an address that is less safe".to_owned();
        return Err(UpstreamError::Refused(why));
    }
    Ok(Some(next))
}
