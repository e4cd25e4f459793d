//! Address of the client: the peer's, or the one that a trusted proxy states.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::FORWARDED;

use packhouse_config::Network;

/// Headers in which a proxy states the original client or request.
const FORWARDING: [&str; 5] =
    ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"];

/// Returns the address of the client. The function uses `Forwarded` (RFC 7239) and
/// `X-Forwarded-For` only if a trusted proxy sent them. It reads their addresses from the last to
/// the first, and stops at the first address that is not a trusted proxy. If both headers are
/// present, `X-Forwarded-For` wins, because most proxies write it. A proxy that writes `Forwarded`
/// must therefore remove `X-Forwarded-For`.
pub fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    last_known(peer, headers, trusted).0.to_canonical()
}

/// Returns the address of the client if it is certain: the peer sent no forwarding header, or only
/// trusted proxies forwarded the request. `None` if an untrusted peer sent a forwarding header, or
/// if the headers contain no valid client address.
pub fn proven_caller(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> Option<IpAddr> {
    if !FORWARDING.iter().any(|name| headers.contains_key(*name)) {
        return Some(peer.to_canonical());
    }
    let (caller, is_named) = last_known(peer, headers, trusted);
    is_named.then(|| caller.to_canonical())
}

/// Returns the farthest address that is known through trusted proxies alone. The flag is false if
/// no proxy stated the address, or if the address before it in the header is invalid.
fn last_known(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> (IpAddr, bool) {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(*address));
    if !is_trusted(&peer) {
        return (peer, false);
    }
    let fields = |name: &str| -> Vec<&str> {
        let fields = headers.get_all(name).iter().rev();
        fields.flat_map(|field| field.to_str().unwrap_or_default().rsplit(',')).map(str::trim).collect()
    };
    let listed = fields("x-forwarded-for");
    let addresses: Vec<Option<IpAddr>> = if listed.is_empty() {
        fields(FORWARDED.as_str()).into_iter().map(forwarded_for).collect()
    } else {
        listed.into_iter().map(node).collect()
    };
    let (mut caller, mut is_named) = (peer, false);
    for address in addresses {
        match (is_trusted(&caller), address) {
            (true, Some(address)) => (caller, is_named) = (address, true),
            (true, None) => return (caller, false),
            (false, _) => break,
        }
    }
    (caller, is_named)
}

/// Parses the address in `for=` of one element: `192.0.2.1`, `"192.0.2.1:4711"`,
/// `"[2001:db8::1]:4711"`. `None` for `unknown` and obfuscated names.
pub(crate) fn forwarded_for(element: &str) -> Option<IpAddr> {
    let value = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
    })?;
    node(value)
}

/// Parses an address with an optional port: `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`.
fn node(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.parse().ok(),
        None => text.split_once(':').map_or(text, |(address, _)| address).parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn named(peer: &str, name: &'static str, field: &str) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert(name, field.parse().unwrap());
        caller(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_names_the_caller() {
        let named = |peer: &str, field: &str| named(peer, "x-forwarded-for", field);
        assert_eq!(named("10.0.0.1", "203.0.113.9"), "203.0.113.9");
        assert_eq!(named("10.0.0.1", "198.51.100.1, 203.0.113.9, 10.0.0.2"), "203.0.113.9");
        assert_eq!(named("192.0.2.1", "203.0.113.9"), "192.0.2.1");
        assert_eq!(named("10.0.0.1", "nobody"), "10.0.0.1");
        for (field, expected) in [
            ("203.0.113.9:4711", "203.0.113.9"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("203.0.113.9:4711, 10.0.0.2:80", "203.0.113.9"),
        ] {
            assert_eq!(named("10.0.0.1", field), expected, "{field}");
        }
    }

    #[test]
    fn the_standard_field_is_read_as_well() {
        for (field, expected) in [
            ("for=203.0.113.9", "203.0.113.9"),
            ("For=\"203.0.113.9:4711\";proto=https", "203.0.113.9"),
            ("for=198.51.100.1, for=203.0.113.9;by=10.0.0.2, for=10.0.0.2", "203.0.113.9"),
            ("proto=https;for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=unknown", "10.0.0.1"),
            ("for=_hidden", "10.0.0.1"),
            ("by=203.0.113.9", "10.0.0.1"),
        ] {
            assert_eq!(named("10.0.0.1", "forwarded", field), expected, "{field}");
        }
        assert_eq!(named("192.0.2.1", "forwarded", "for=203.0.113.9"), "192.0.2.1");
    }

    #[test]
    fn a_caller_is_proven_where_every_proxy_in_between_is_trusted() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let proven = |peer: &str, name: &'static str, field: &str| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), field.parse().unwrap())]);
            proven_caller(peer.parse().unwrap(), &headers, &trusted).map(|address| address.to_string())
        };
        assert_eq!(proven("127.0.0.1", "accept", "*/*").as_deref(), Some("127.0.0.1"));
        assert_eq!(proven("10.0.0.1", "accept", "*/*").as_deref(), Some("10.0.0.1"));
        assert_eq!(proven("10.0.0.1", "x-forwarded-for", "127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(proven("10.0.0.1", "forwarded", "for=203.0.113.9").as_deref(), Some("203.0.113.9"));
        for name in FORWARDING {
            assert_eq!(proven("127.0.0.1", name, "127.0.0.1"), None, "{name}");
        }
        for name in ["x-forwarded-for", "forwarded", "x-forwarded-host", "x-real-ip"] {
            assert_eq!(proven("10.0.0.1", name, "unknown"), None, "{name}");
        }
    }
}
