//! Headers that the host adds to a request, and those of a response that it reads or keeps.

use std::time::{Duration, SystemTime};

use http::header::{ACCEPT_ENCODING, IF_MODIFIED_SINCE, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};

/// The largest sum of all header fields of a response that are kept and shown to a plugin, in bytes, and their number.
const HEADER_BYTES: usize = 32 * 1024;
const HEADERS: usize = 100;

/// Headers that an upstream may not set, or that belong to one connection.
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

/// Makes a request conditional on the cached response with these headers.
pub(crate) fn add_validators(headers: &mut HeaderMap, cached: &[(String, String)]) {
    for (theirs, ours) in [("etag", IF_NONE_MATCH), ("last-modified", IF_MODIFIED_SINCE)] {
        let value = cached.iter().find(|(name, _)| name == theirs).and_then(|(_, value)| value.parse().ok());
        headers.extend(value.map(|value: HeaderValue| (ours, value)));
    }
}

/// Asks for a compressed response, or for one as it is.
pub(crate) fn set_accept_encoding(headers: &mut HeaderMap, compressed: bool) {
    let encoding = if compressed { "gzip" } else { "identity" };
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
}

/// The headers of a response that are kept.
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

/// How long an upstream asks not to be sent requests (RFC 9110, 10.2.3).
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
