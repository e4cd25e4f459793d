//! From which address a call comes: the peer's, or behind a trusted proxy the one that it names.

use std::net::IpAddr;

use http::HeaderMap;

use packhouse_config::Network;

/// The address of the caller. `X-Forwarded-For` counts only from a trusted proxy, and is read from its end: the last
/// address that is no trusted proxy itself.
pub fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(*address));
    let mut caller = peer;
    let named = headers.get_all("x-forwarded-for").iter().rev();
    let addresses = named
        .flat_map(|field| field.to_str().unwrap_or_default().rsplit(','))
        .map(|text| text.trim().parse());
    for address in addresses {
        match (is_trusted(&caller), address) {
            (true, Ok(address)) => caller = address,
            _ => break,
        }
    }
    caller.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_the_caller() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let named = |peer: &str, field: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", field.parse().unwrap());
            caller(peer.parse().unwrap(), &headers, &trusted).to_string()
        };
        assert_eq!(named("10.0.0.1", "203.0.113.9"), "203.0.113.9");
        assert_eq!(named("10.0.0.1", "198.51.100.1, 203.0.113.9, 10.0.0.2"), "203.0.113.9");
        assert_eq!(named("192.0.2.1", "203.0.113.9"), "192.0.2.1");
        assert_eq!(named("10.0.0.1", "nobody"), "10.0.0.1");
    }
}
