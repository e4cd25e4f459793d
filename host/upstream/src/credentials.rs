//! Credentials at upstreams, for formats whose description allows them: Basic, and Bearer with a token realm.
//!
//! They go to the upstream's own origin, and to a token realm there or at the host that was named with them; to no other, whatever
//! a challenge or a redirect says. A realm elsewhere is asked without them, as public registries want it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::Response;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::exchange::{self, Question, same_origin};
use super::site::Site;
use super::trouble::Trouble;
use packhouse_identity::Secret;

/// How long a token is used that does not say how long it lives.
const TOKEN_LIVES: Duration = Duration::from_secs(60);
/// Tokens that are remembered of one upstream.
const TOKENS: usize = 1000;
/// Bytes of a token service's answer.
const TOKEN_BYTES: usize = 64 * 1024;

/// What a proxy may show its upstream.
#[derive(Clone, Default)]
pub enum Access {
    /// Nothing: the format presents no credentials.
    #[default]
    None,
    /// What challenges ask for, with these credentials where there are some.
    Challenged(Option<Credentials>),
}

/// Credentials of one upstream.
#[derive(Clone, Eq, PartialEq)]
pub struct Credentials {
    /// The account.
    pub username: String,
    /// Its password or token.
    pub password: Secret,
    /// A token realm on another host that may see them.
    pub token_realm: Option<String>,
}

impl Credentials {
    /// As one text, to be sealed.
    pub fn to_secret(&self) -> Secret {
        Secret::new(json!([self.username, self.password.reveal(), self.token_realm]).to_string())
    }

    /// What [`Credentials::to_secret`] made; none of any other text.
    pub fn of_secret(text: &Secret) -> Option<Credentials> {
        let (username, password, token_realm) = serde_json::from_str::<(_, String, _)>(text.reveal()).ok()?;
        Some(Credentials { username, password: Secret::new(password), token_realm })
    }

    fn basic(&self) -> Option<HeaderValue> {
        let pair = Secret::new(format!("{}:{}", self.username, self.password.reveal()));
        HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.reveal()))).ok()
    }
}

/// What was given out for one upstream.
#[derive(Default)]
pub struct Keyring {
    given: Mutex<HashMap<String, (HeaderValue, Instant)>>,
    own: tokio::sync::Mutex<Option<(Option<Credentials>, Instant)>>,
}

/// How long credentials are used before they are read again: another server may have changed them.
const READ_AGAIN: Duration = Duration::from_secs(30);

impl Keyring {
    /// The credentials, as `read` finds them. With others than before, what those brought is no longer shown.
    pub async fn own(
        &self,
        read: impl Future<Output = Result<Option<Credentials>, Trouble>>,
    ) -> Result<Option<Credentials>, Trouble> {
        let mut own = self.own.lock().await;
        if let Some((known, at)) = &*own
            && at.elapsed() < READ_AGAIN
        {
            return Ok(known.clone());
        }
        let found = read.await?;
        if own.as_ref().is_some_and(|(known, _)| *known != found) {
            self.given.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        *own = Some((found.clone(), Instant::now()));
        Ok(found)
    }

    fn get(&self, key: &str) -> Option<HeaderValue> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.get(key).filter(|(_, until)| *until > Instant::now()).map(|(value, _)| value.clone())
    }

    fn put(&self, key: &str, value: &HeaderValue, lives: Duration) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() >= TOKENS {
            given.clear();
        }
        given.insert(key.to_owned(), (value.clone(), Instant::now() + lives));
    }

    fn forget(&self, key: &str) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Sends a question to the upstream's own origin; a challenge is met once.
pub async fn send(site: &Site, question: &Question, url: &Url, access: &Access) -> Result<Response, Trouble> {
    let Access::Challenged(credentials) = access else {
        return exchange::send(site, question, &question.method, url, None).await;
    };
    // What is asked beside each other is mostly asked by one right.
    let key = beside(url);
    let known = site.keyring.get(&key);
    let response = exchange::send(site, question, &question.method, url, known).await?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(response);
    }
    site.keyring.forget(&key);
    let Some(Pass { value, lives, own }) = meet(site, response.headers(), credentials.as_ref()).await? else {
        return Ok(response);
    };
    let again = exchange::send(site, question, &question.method, url, Some(value.clone())).await?;
    match again.status() {
        StatusCode::UNAUTHORIZED if own => return Err(Trouble::Credentials),
        StatusCode::UNAUTHORIZED => (),
        _ => site.keyring.put(&key, &value, lives),
    }
    Ok(again)
}

/// What meets a challenge.
struct Pass {
    value: HeaderValue,
    lives: Duration,
    /// Whether it is the credentials themselves: an upstream that refuses these has been told the wrong ones, where one that
    /// refuses a token may only not have what was asked for.
    own: bool,
}

/// The path without its last two segments.
fn beside(url: &Url) -> String {
    let mut parts = url.path().rsplitn(3, '/');
    parts.nth(2).unwrap_or_default().to_owned()
}

/// What meets a challenge; none where nothing does.
async fn meet(
    site: &Site,
    headers: &HeaderMap,
    credentials: Option<&Credentials>,
) -> Result<Option<Pass>, Trouble> {
    let challenges = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = challenges.collect();
    let of = |scheme: &str| {
        challenges.iter().find_map(|challenge| {
            let (name, rest) = challenge.trim().split_once(' ').unwrap_or((challenge, ""));
            name.eq_ignore_ascii_case(scheme).then_some(rest)
        })
    };
    if let Some(parameters) = of("bearer") {
        return token(site, &parse(parameters), credentials).await;
    }
    let basic = of("basic").and(credentials).and_then(Credentials::basic);
    Ok(basic.map(|value| Pass { value, lives: Duration::from_hours(1), own: true }))
}

/// `realm="https://…",service="…"` as names and values.
fn parse(parameters: &str) -> HashMap<String, String> {
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

/// A token service's answer. Some name the token in one way, some in the other, some in both.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Asks a token realm. It sees the credentials only at the upstream's origin, or where it was named with them.
async fn token(
    site: &Site,
    challenge: &HashMap<String, String>,
    credentials: Option<&Credentials>,
) -> Result<Option<Pass>, Trouble> {
    let Some(mut realm) = challenge.get("realm").and_then(|realm| realm.parse::<Url>().ok()) else {
        return Ok(None);
    };
    let named: Option<Url> = credentials.and_then(|own| own.token_realm.as_ref()?.parse().ok());
    let trusted =
        same_origin(&realm, &site.upstream) || named.is_some_and(|named| same_origin(&realm, &named));
    let authorization = credentials.filter(|_| trusted).and_then(Credentials::basic);
    for name in ["service", "scope"] {
        if let Some(value) = challenge.get(name) {
            realm.query_pairs_mut().append_pair(name, value);
        }
    }
    let question = Question {
        method: Method::GET,
        url: realm.clone(),
        headers: HeaderMap::new(),
        body: None,
        own: false,
    };
    let shown = authorization.is_some();
    if !shown && credentials.is_some() {
        let origin = realm.origin().ascii_serialization();
        tracing::warn!(
            origin,
            "an upstream's token service is elsewhere and not named as `token_realm`: it sees no credentials"
        );
    }
    let response = exchange::send(site, &question, &Method::GET, &realm, authorization).await?;
    match response.status() {
        StatusCode::OK => (),
        StatusCode::UNAUTHORIZED if shown => return Err(Trouble::Credentials),
        _ => return Ok(None),
    }
    let Some(Token { token, access_token, expires_in }) = read(site, response).await? else {
        return Ok(None);
    };
    let Some(token) = token.or(access_token) else { return Ok(None) };
    let lives = expires_in.map_or(TOKEN_LIVES, Duration::from_secs);
    // A little early, so that none ends on its way.
    let lives = lives.saturating_sub(Duration::from_secs(10)).min(Duration::from_hours(1));
    let value = HeaderValue::try_from(format!("Bearer {token}")).ok();
    Ok(value.map(|value| Pass { value, lives, own: false }))
}

async fn read(site: &Site, mut response: Response) -> Result<Option<Token>, Trouble> {
    let mut bytes = Vec::new();
    let late = |_| Trouble::Unavailable("the token service does not answer in time".to_owned());
    while let Some(chunk) = tokio::time::timeout(site.bounds.idle, response.chunk())
        .await
        .map_err(late)?
        .map_err(Trouble::of_client)?
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
        let parameters = parse(
            r#"realm="https://auth.test/token?a=b",service="registry, the", scope="repository:a/b:pull""#,
        );
        assert_eq!(parameters["realm"], "https://auth.test/token?a=b");
        assert_eq!(parameters["service"], "registry, the");
        assert_eq!(parameters["scope"], "repository:a/b:pull");
        assert_eq!(parse("Realm=plain, service=x")["realm"], "plain");
        assert!(parse("").is_empty());
    }

    #[tokio::test]
    async fn with_other_credentials_nothing_is_shown_of_the_former() {
        let of = |password: &str| {
            let password = Secret::new(password);
            Some(Credentials { username: "u".to_owned(), password, token_realm: None })
        };
        let keyring = Keyring::default();
        let read = async |found| keyring.own(async { Ok(found) }).await.unwrap();
        let shown = || keyring.get("k").is_some();
        assert!(read(of("1")).await == of("1"));
        keyring.put("k", &HeaderValue::from_static("x"), READ_AGAIN);
        assert!(read(of("2")).await == of("1") && shown(), "they are not read each time");
        let is_old = |keyring: &Keyring| {
            let mut own = keyring.own.try_lock().unwrap();
            own.as_mut().unwrap().1 -= READ_AGAIN;
        };
        is_old(&keyring);
        assert!(read(of("1")).await == of("1") && shown());
        is_old(&keyring);
        assert!(read(None).await.is_none() && !shown());
    }

    #[test]
    fn what_lies_beside_shares_a_right() {
        let at = |path: &str| beside(&format!("https://r.test{path}").parse().unwrap());
        assert_eq!(at("/v2/library/alpine/manifests/latest"), at("/v2/library/alpine/blobs/sha256:0"));
        assert_ne!(at("/v2/library/alpine/manifests/latest"), at("/v2/library/busybox/manifests/latest"));
        assert_eq!(at("/x"), "");
    }
}
