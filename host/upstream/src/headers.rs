//! Headers that the host adds to a request, and the headers of a response that it reads or stores.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{ACCEPT_ENCODING, IF_MODIFIED_SINCE, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Maximum total size in bytes of the response headers that are stored and passed to a plugin, and
/// their maximum number.
const HEADER_BYTES: usize = 32 * 1024;
const HEADERS: usize = 100;

/// Header that tells a plugin that a 404 is a refusal. Its value is the upstream's own status.
pub(crate) const REFUSED: &str = "refused";

/// Headers that an upstream may not set, or that belong to one connection.
const DROPPED: [&str; 12] = [
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
    REFUSED,
];

/// Longest plausible wait in `X-RateLimit-Reset`.
const LONGEST_RESET: Duration = Duration::from_hours(24);

/// Makes a request conditional on the cached response with these headers.
pub(crate) fn add_validators(headers: &mut HeaderMap, cached: &[(String, String)]) {
    for (theirs, ours) in [("etag", IF_NONE_MATCH), ("last-modified", IF_MODIFIED_SINCE)] {
        let value = cached.iter().find(|(name, _)| name == theirs).and_then(|(_, value)| value.parse().ok());
        headers.extend(value.map(|value: HeaderValue| (ours, value)));
    }
}

/// Requests a compressed or an uncompressed response.
pub(crate) fn set_accept_encoding(headers: &mut HeaderMap, compressed: bool) {
    let encoding = if compressed { "gzip" } else { "identity" };
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
}

/// Returns the headers of a response that are stored.
pub(crate) fn stored(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut bytes = 0;
    let readable = headers.iter().filter(|(name, _)| !DROPPED.contains(&name.as_str()));
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

/// Returns how long an upstream asks clients to wait (RFC 9110, 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

/// Returns true if the upstream limits the rate of requests: status 429, or 403 with a header that
/// distinguishes it from a refusal, as GitHub sends.
pub(crate) fn limits_rate(status: StatusCode, headers: &HeaderMap) -> bool {
    let has_limit_header =
        || headers.contains_key(RETRY_AFTER) || number(headers, "x-ratelimit-remaining") == Some(0);
    status == StatusCode::TOO_MANY_REQUESTS || (status == StatusCode::FORBIDDEN && has_limit_header())
}

/// Returns how long a rate-limiting upstream asks clients to wait. Without `Retry-After`, the wait
/// ends at the time in `X-RateLimit-Reset`, in seconds since 1970.
pub(crate) fn rate_limit_wait(headers: &HeaderMap) -> Option<Duration> {
    let until_reset = || {
        let reset = Duration::from_secs(number(headers, "x-ratelimit-reset")?);
        let wait = reset.checked_sub(SystemTime::now().duration_since(UNIX_EPOCH).ok()?)?;
        // Some servers send milliseconds, which would be an implausibly long wait.
        (wait <= LONGEST_RESET).then_some(wait)
    };
    retry_after(headers).or_else(until_reset)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

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

    fn limited(status: u16, fields: &[(&'static str, String)]) -> Option<Option<Duration>> {
        let field = |(name, value): &(&'static str, String)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = fields.iter().map(field).collect();
        let status = StatusCode::from_u16(status).unwrap();
        limits_rate(status, &headers).then(|| rate_limit_wait(&headers))
    }

    #[test]
    fn a_403_limits_the_rate_where_a_header_says_so() {
        let spent = ("x-ratelimit-remaining", "0".to_owned());
        let after = ("retry-after", "60".to_owned());
        let minute = Some(Some(Duration::from_secs(60)));
        assert_eq!(limited(429, &[]), Some(None));
        assert_eq!(limited(403, &[]), None);
        assert_eq!(limited(403, &[("x-ratelimit-remaining", "7".to_owned())]), None);
        assert_eq!(limited(403, std::slice::from_ref(&after)), minute);
        assert_eq!(limited(403, std::slice::from_ref(&spent)), Some(None));
        assert_eq!(limited(404, &[spent, after]), None);
    }

    #[test]
    fn a_rate_is_spent_until_its_reset() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let reset = |at: u64| ("x-ratelimit-reset", at.to_string());
        let hour = limited(429, &[reset(now + 3600)]).flatten();
        assert!(hour.is_some_and(|wait| wait > Duration::from_secs(3000)), "{hour:?}");
        // Some servers send the seconds from now instead of the seconds since 1970.
        assert_eq!(limited(429, &[reset(30)]), Some(None));
        let after = ("retry-after", "60".to_owned());
        assert_eq!(limited(429, &[reset(now + 3600), after]), Some(Some(Duration::from_secs(60))));
    }
}
