//! Answers an upstream's authentication challenges: Basic, and Bearer with a token service.
//!
//! Credentials are sent only to the upstream's own origin, and to a token service. The token
//! service must be at this origin, or at the host that is configured with the credentials. A
//! challenge or a redirect cannot change this rule. Other token services get requests without
//! credentials, as public registries expect.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::Response;
use serde::Deserialize;
use url::Url;

use super::client::UpstreamClient;
use super::credentials::{Credentials, UpstreamAuth};
use super::error::UpstreamError;
use super::headers;
use super::request::{UpstreamRequest, same_origin};
use super::transport;

/// Lifetime of a token that does not state one.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
/// Longest time to use a token or the credentials without a new challenge.
const LONGEST_LIFETIME: Duration = Duration::from_hours(1);
/// Maximum size of a token service's response, in bytes.
const TOKEN_BYTES: usize = 64 * 1024;

/// A problem with the configured credentials of an upstream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum CredentialProblem {
    /// The upstream or its token service refused the credentials.
    Refused,
    /// The host did not send the credentials, because the token service is at this other origin and
    /// no configuration allows it.
    NotSent(String),
}

impl fmt::Display for CredentialProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the upstream refuses the configured credentials"),
            Self::NotSent(origin) => write!(
                f,
                "the configured credentials were not sent: the upstream's token service is at {origin}, \
                 which is not configured as their `token_realm`"
            ),
        }
    }
}

/// A response, and the problem with the credentials, if any.
pub(crate) struct AuthenticatedResponse {
    pub response: Response,
    pub problem: Option<CredentialProblem>,
}

/// Sends a request to the upstream's own origin. Sends it once more if the response is a challenge
/// that can be answered.
pub(crate) async fn send(
    client: &UpstreamClient,
    request: &UpstreamRequest,
    url: &Url,
    auth: &UpstreamAuth,
) -> Result<AuthenticatedResponse, UpstreamError> {
    let UpstreamAuth::OnChallenge(credentials) = auth else {
        let response = transport::send(client, request, &request.method, url, None).await?;
        return Ok(AuthenticatedResponse { response, problem: None });
    };
    let key = protection_space(url);
    let known = client.keyring.get(&key);
    let response = transport::send(client, request, &request.method, url, known).await?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(AuthenticatedResponse { response, problem: None });
    }
    client.keyring.forget(&key);
    let ChallengeAnswer { authorization, problem } =
        answer_challenge(client, response.headers(), credentials.as_ref()).await?;
    let Some(Authorization { header, lifetime, is_credentials }) = authorization else {
        return Ok(AuthenticatedResponse { response, problem });
    };
    let again = transport::send(client, request, &request.method, url, Some(header.clone())).await?;
    let problem = match again.status() {
        StatusCode::UNAUTHORIZED if is_credentials => Some(CredentialProblem::Refused),
        StatusCode::UNAUTHORIZED => problem,
        _ => {
            client.keyring.put(&key, &header, lifetime);
            problem
        }
    };
    Ok(AuthenticatedResponse { response: again, problem })
}

/// An `Authorization` header that answers a challenge.
struct Authorization {
    header: HeaderValue,
    lifetime: Duration,
    /// True if the header contains the credentials themselves. If the upstream refuses them, they
    /// are wrong. If it refuses a token, the requested resource may just not exist.
    is_credentials: bool,
}

/// The answer to a challenge and the problem with the credentials, either of which may be missing.
#[derive(Default)]
struct ChallengeAnswer {
    authorization: Option<Authorization>,
    problem: Option<CredentialProblem>,
}

/// Returns the path without its last two segments. One token usually covers everything below this
/// path.
fn protection_space(url: &Url) -> String {
    let mut parts = url.path().rsplitn(3, '/');
    parts.nth(2).unwrap_or_default().to_owned()
}

/// Answers the challenge in a response's headers.
async fn answer_challenge(
    client: &UpstreamClient,
    headers: &HeaderMap,
    credentials: Option<&Credentials>,
) -> Result<ChallengeAnswer, UpstreamError> {
    let challenges = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = challenges.collect();
    let of = |scheme: &str| {
        challenges.iter().find_map(|challenge| {
            let (name, rest) = challenge.trim().split_once(' ').unwrap_or((challenge, ""));
            name.eq_ignore_ascii_case(scheme).then_some(rest)
        })
    };
    if let Some(parameters) = of("bearer") {
        return request_token(client, &parse_parameters(parameters), credentials).await;
    }
    let basic = of("basic").and(credentials).and_then(Credentials::basic);
    let authorization =
        basic.map(|header| Authorization { header, lifetime: LONGEST_LIFETIME, is_credentials: true });
    Ok(ChallengeAnswer { authorization, problem: None })
}

/// Parses `realm="https://…",service="…"` into names and values.
fn parse_parameters(parameters: &str) -> HashMap<String, String> {
    let (mut found, mut rest) = (HashMap::new(), parameters.trim());
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([',', ' ']).to_ascii_lowercase();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.insert(name, value.to_owned());
        rest = after;
    }
    found
}

/// Response of a token service. Services put the token into `token`, into `access_token`, or into
/// both.
#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
    /// Lifetime in seconds.
    expires_in: Option<u64>,
}

/// Requests a token from a token service. The request contains the credentials only if the service
/// is at the upstream's origin, or at the origin that is configured with the credentials.
async fn request_token(
    client: &UpstreamClient,
    challenge: &HashMap<String, String>,
    credentials: Option<&Credentials>,
) -> Result<ChallengeAnswer, UpstreamError> {
    let Some(mut realm) = challenge.get("realm").and_then(|realm| realm.parse::<Url>().ok()) else {
        return Ok(ChallengeAnswer::default());
    };
    let named: Option<Url> = credentials.and_then(|own| own.token_realm.as_ref()?.parse().ok());
    let trusted =
        same_origin(&realm, &client.upstream) || named.is_some_and(|named| same_origin(&realm, &named));
    let authorization = credentials.filter(|_| trusted).and_then(Credentials::basic);
    for name in ["service", "scope"] {
        if let Some(value) = challenge.get(name) {
            realm.query_pairs_mut().append_pair(name, value);
        }
    }
    let request = UpstreamRequest {
        method: Method::GET,
        url: realm.clone(),
        headers: HeaderMap::new(),
        body: None,
        below_upstream: false,
    };
    let authenticated = authorization.is_some();
    let problem = (!authenticated && credentials.is_some())
        .then(|| CredentialProblem::NotSent(realm.origin().ascii_serialization()));
    if let Some(problem) = &problem {
        tracing::warn!(upstream = client.upstream.as_str(), %problem, "upstream credentials not sent");
    }
    let response = transport::send(client, &request, &Method::GET, &realm, authorization).await?;
    match response.status() {
        StatusCode::OK => (),
        StatusCode::UNAUTHORIZED if authenticated => {
            let problem = Some(CredentialProblem::Refused);
            return Ok(ChallengeAnswer { authorization: None, problem });
        }
        status if headers::limits_rate(status, response.headers()) => {
            return Err(UpstreamError::Throttled(headers::rate_limit_wait(response.headers())));
        }
        status if status.is_server_error() => {
            let why = format!("the token service of the upstream answered with status {}", status.as_u16());
            return Err(UpstreamError::Unavailable(why));
        }
        _ => return Ok(ChallengeAnswer { authorization: None, problem }),
    }
    let token = read_token(client, response).await?;
    let authorization = token.and_then(TokenResponse::authorization);
    Ok(ChallengeAnswer { authorization, problem })
}

impl TokenResponse {
    fn authorization(self) -> Option<Authorization> {
        let TokenResponse { token, access_token, expires_in } = self;
        let token = token.or(access_token)?;
        let lifetime = expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs);
        // A margin, so that tokens do not expire in transit.
        let lifetime = lifetime.saturating_sub(Duration::from_secs(10)).min(LONGEST_LIFETIME);
        let header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        Some(Authorization { header, lifetime, is_credentials: false })
    }
}

async fn read_token(
    client: &UpstreamClient,
    mut response: Response,
) -> Result<Option<TokenResponse>, UpstreamError> {
    let mut bytes = Vec::new();
    let late = |_| UpstreamError::Unavailable("the token service did not respond in time".to_owned());
    while let Some(chunk) = tokio::time::timeout(client.bounds.idle, response.chunk())
        .await
        .map_err(late)?
        .map_err(UpstreamError::of_client)?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > TOKEN_BYTES {
            return Ok(None);
        }
    }
    Ok(serde_json::from_slice(&bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_in_any_order() {
        let parameters = parse_parameters(
            r#"realm="https://auth.test/token?a=b",service="registry, the", scope="repository:a/b:pull""#,
        );
        assert_eq!(parameters["realm"], "https://auth.test/token?a=b");
        assert_eq!(parameters["service"], "registry, the");
        assert_eq!(parameters["scope"], "repository:a/b:pull");
        assert_eq!(parse_parameters("Realm=plain, service=x")["realm"], "plain");
        assert!(parse_parameters("").is_empty());
    }

    #[test]
    fn paths_beside_each_other_share_a_token() {
        let at = |path: &str| protection_space(&format!("https://r.test{path}").parse().unwrap());
        assert_eq!(at("/v2/library/alpine/manifests/latest"), at("/v2/library/alpine/blobs/sha256:0"));
        assert_ne!(at("/v2/library/alpine/manifests/latest"), at("/v2/library/busybox/manifests/latest"));
        assert_eq!(at("/x"), "");
    }
}
