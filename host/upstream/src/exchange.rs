//! One question to an upstream, over as many redirects as are allowed, each judged like the first address.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use packhouse_runtime::ServiceError;
use reqwest::Response;
use url::{Origin, Url};

use super::credentials::{self, Access};
use super::site::Site;
use super::trouble::Trouble;

/// Redirects that are followed.
const REDIRECTS: usize = 5;
/// Bytes of all header fields of an answer that are kept and shown to a plugin, and how many of them.
const HEADER_BYTES: usize = 32 * 1024;
const HEADERS: usize = 100;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// Whether it lies below the upstream's address: credentials go nowhere else.
    pub own: bool,
}

impl Question {
    /// The address that a plugin names: below the upstream's, or absolute. `Invalid` for one that leaves the upstream's path.
    pub fn address(upstream: &Url, target: &str) -> Result<(Url, bool), ServiceError> {
        let invalid = |why: &str| ServiceError::Invalid(format!("{why}: {target}"));
        if target.starts_with("http://") || target.starts_with("https://") {
            let mut url: Url = target.parse().map_err(|_| invalid("not an address"))?;
            let plain = url.username().is_empty() && url.password().is_none();
            url.set_fragment(None);
            return if plain { Ok((url, false)) } else { Err(invalid("an address with a credential")) };
        }
        let base = upstream.as_str().trim_end_matches('/');
        let url: Url = format!("{base}/{}", target.trim_start_matches('/'))
            .parse()
            .map_err(|_| invalid("not an address"))?;
        let folder = format!("{}/", upstream.path().trim_end_matches('/'));
        let below = url.path().starts_with(&folder) && url.origin() == upstream.origin();
        if below { Ok((url, true)) } else { Err(invalid("not below the upstream's address")) }
    }
}

/// The headers that a plugin may send; what belongs to the connection, the host or the cache is left out.
pub(crate) fn sendable(headers: &[(String, String)]) -> Result<HeaderMap, ServiceError> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || ServiceError::Invalid(format!("a header {name:?} cannot be sent"));
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        let value: HeaderValue = value.parse().map_err(|_| wrong())?;
        if NOT_A_PLUGINS.contains(&name.as_str()) {
            return Err(wrong());
        }
        all.append(name, value);
    }
    Ok(all)
}

const NOT_A_PLUGINS: [&str; 19] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "expect",
    "proxy-authorization",
    "proxy-connection",
    "authorization",
    "cookie",
    "range",
    "if-range",
    "if-none-match",
    "if-modified-since",
    "if-match",
    "accept-encoding",
];

/// Not an upstream's to say, or of one connection.
const NOT_KEPT: [&str; 11] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "set-cookie",
    "www-authenticate",
    "proxy-authenticate",
    "alt-svc",
    "age",
];

/// What makes a question ask whether a kept answer is still right.
pub(crate) fn validators(headers: &mut HeaderMap, kept: &[(String, String)]) {
    for (theirs, ours) in [("etag", IF_NONE_MATCH), ("last-modified", IF_MODIFIED_SINCE)] {
        let value = kept.iter().find(|(name, _)| name == theirs).and_then(|(_, value)| value.parse().ok());
        headers.extend(value.map(|value: HeaderValue| (ours, value)));
    }
}

/// Whether the plugin's encoding of choice is anything but none.
pub(crate) fn compressed(headers: &mut HeaderMap, wanted: bool) {
    let encoding = if wanted { "gzip" } else { "identity" };
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
}

/// Those headers of an answer that are kept.
pub(crate) fn kept(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut bytes = 0;
    let readable = headers.iter().filter(|(name, _)| !NOT_KEPT.contains(&name.as_str()));
    let readable =
        readable.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    readable
        .take_while(|(name, value)| {
            bytes += name.len() + value.len();
            bytes <= HEADER_BYTES
        })
        .take(HEADERS)
        .collect()
}

/// The answer's head and where it came from. `Refused` for an address that nobody is sent to.
pub(crate) async fn ask(
    site: &Site,
    question: &Question,
    access: &Access,
) -> Result<(Response, Url), Trouble> {
    let (mut url, mut method) = (question.url.clone(), question.method.clone());
    // Once it has left the upstream's origin, nothing of its credentials goes along any more.
    let mut own = question.own && same_origin(&url, &site.upstream);
    for _ in 0..=REDIRECTS {
        let response = match own {
            true => credentials::send(site, question, &url, access).await?,
            false => send(site, question, &method, &url, None).await?,
        };
        let Some(next) = redirect(&response, &url)? else { return Ok((response, url)) };
        if response.status() == StatusCode::SEE_OTHER && method != Method::HEAD {
            method = Method::GET;
        }
        own = own && same_origin(&next, &site.upstream);
        url = next;
    }
    Err(Trouble::Unavailable(format!("the upstream redirects more than {REDIRECTS} times")))
}

/// Scheme, host and port.
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    matches!(one.origin(), Origin::Tuple(..)) && one.origin() == other.origin()
}

/// Sends it once.
pub(crate) async fn send(
    site: &Site,
    question: &Question,
    method: &Method,
    url: &Url,
    authorization: Option<HeaderValue>,
) -> Result<Response, Trouble> {
    let way = site.reach.judge(url).await.map_err(|error| Trouble::Refused(error.to_string()))?;
    let mut request =
        site.client(way)?.request(method.clone(), url.clone()).headers(question.headers.clone());
    if let Some(body) = question.body.clone().filter(|_| *method == Method::POST) {
        request = request.body(body);
    }
    if let Some(mut authorization) = authorization {
        authorization.set_sensitive(true);
        request = request.header(AUTHORIZATION, authorization);
    }
    let sent = tokio::time::timeout(site.bounds.connect + site.bounds.idle, request.send()).await;
    let late = |_| Trouble::Unavailable("the upstream does not answer in time".to_owned());
    sent.map_err(late)?.map_err(Trouble::of_client)
}

fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, Trouble> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let nowhere = || Trouble::Unavailable("the upstream redirects to no address".to_owned());
    let mut next = from.join(location.ok_or_else(nowhere)?).map_err(|_| nowhere())?;
    next.set_fragment(None);
    // What is in such an address is a credential, and not one of ours.
    let plain = next.username().is_empty() && next.password().is_none();
    if !plain || (from.scheme() == "https" && next.scheme() == "http") {
        return Err(Trouble::Refused("the upstream redirects to an address that is less safe".to_owned()));
    }
    Ok(Some(next))
}

/// How long an upstream wants to be left alone.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_lie_below_the_upstream_or_are_absolute() {
        let upstream: Url = "https://repo.test/files/".parse().unwrap();
        let at =
            |target: &str| Question::address(&upstream, target).map(|(url, own)| (url.to_string(), own)).ok();
        for (target, url, own) in [
            ("/a/b.jar", "https://repo.test/files/a/b.jar", true),
            ("a%2Fb?x=1", "https://repo.test/files/a%2Fb?x=1", true),
            ("", "https://repo.test/files/", true),
            ("https://files.test/x#y", "https://files.test/x", false),
            ("https://repo.test/files/a", "https://repo.test/files/a", false),
            ("//evil.test/x", "https://repo.test/files/evil.test/x", true),
        ] {
            assert_eq!(at(target), Some((url.to_owned(), own)), "{target}");
        }
        for target in ["../secret", "/a/../../b", "%2e%2e/x", "https://u:p@files.test/", "https://"] {
            assert_eq!(at(target), None, "{target}");
        }
        let bare: Url = "http://10.0.0.1:8080".parse().unwrap();
        assert_eq!(
            Question::address(&bare, "@evil.test/x").unwrap().0.as_str(),
            "http://10.0.0.1:8080/@evil.test/x"
        );
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (one, other, same) in [
            ("https://a.test/x", "https://a.test:443/y?z", true),
            ("https://A.test/", "https://a.test/", true),
            ("https://a.test/", "http://a.test/", false),
            ("https://a.test/", "https://a.test:8443/", false),
            ("https://a.test/", "https://a.test.evil.test/", false),
            ("https://a.test/", "https://b.a.test/", false),
            ("data:x", "data:x", false),
        ] {
            assert_eq!(same_origin(&one.parse().unwrap(), &other.parse().unwrap()), same, "{one} {other}");
        }
    }

    #[test]
    fn a_plugin_sends_no_header_of_the_hosts() {
        let header = |name: &str, value: &str| sendable(&[(name.to_owned(), value.to_owned())]);
        assert!(header("accept", "a/b").is_ok());
        for name in NOT_A_PLUGINS {
            assert!(header(name, "x").is_err(), "{name}");
        }
        assert!(header("a b", "x").is_err() && header("a", "x\r\ny: z").is_err());
    }

    #[test]
    fn seconds_and_dates_are_read() {
        let wait = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(wait("120"), Some(Duration::from_secs(120)));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        assert!(wait(&later).is_some_and(|wait| wait.as_secs() >= 55));
        assert_eq!(wait("soon"), None);
    }
}
