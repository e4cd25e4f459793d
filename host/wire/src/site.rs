//! Site that a request was made to: scheme, name and port as the client wrote them. Links in
//! responses start with it if no public address is configured.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::FORWARDED;
use http::request::Parts;
use packhouse_config::Network;
use url::{Host, Url};

use crate::client_address::forwarded_for;
use crate::host::{host, without_port};

/// Scheme, name and port of an address that a client can connect to, never an unspecified address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Site {
    text: String,
    name: String,
}

impl Site {
    /// Returns the site of this scheme and `name` or `name:port`. `None` if the name or port is
    /// invalid or the address is unspecified.
    pub fn new(scheme: &str, authority: &str) -> Option<Site> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        let plain = !authority.is_empty() && authority.bytes().all(allowed);
        plain.then(|| Site::of(&format!("{scheme}://{authority}"))).flatten()
    }

    /// Returns the site of an http or https URL.
    pub fn of(address: &str) -> Option<Site> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let usable = match url.host()? {
            Host::Domain(name) => !name.is_empty(),
            Host::Ipv4(address) => !address.is_unspecified(),
            Host::Ipv6(address) => !IpAddr::V6(address).to_canonical().is_unspecified(),
        };
        let name = url.host_str()?.to_owned();
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let text = format!("{}://{name}{port}", url.scheme());
        (usable && url.port() != Some(0)).then_some(Site { text, name })
    }

    /// Returns the site of a request on a listener of this scheme. The site comes from the `Host`
    /// header, or from the headers of a trusted proxy: `X-Forwarded-Host`, `X-Forwarded-Proto` and
    /// `X-Forwarded-Port`, otherwise `Forwarded`.
    pub fn of_request(parts: &Parts, peer: IpAddr, trusted: &[Network], scheme: &str) -> Option<Site> {
        let own = host(parts).ok().flatten();
        let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
        let named = match is_trusted(peer) {
            true => Forwarding::read(&parts.headers, is_trusted),
            false => Forwarding::default(),
        };
        let scheme = named.scheme.as_deref().unwrap_or(scheme);
        let authority = named.host.or(own)?;
        match named.port.filter(|_| without_port(&authority) == authority) {
            Some(port) => Site::new(scheme, &format!("{authority}:{port}")),
            None => Site::new(scheme, &authority),
        }
    }

    /// Returns scheme, name and port. The scheme's default port is omitted.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns name and port. The scheme's default port is omitted.
    pub fn authority(&self) -> &str {
        self.text.split_once("://").map_or(self.text.as_str(), |(_, authority)| authority)
    }

    /// Returns the name without port; an IPv6 address is in brackets.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Original request as stated by a proxy.
#[derive(Default)]
struct Forwarding {
    scheme: Option<String>,
    host: Option<String>,
    port: Option<String>,
}

impl Forwarding {
    /// Reads the `X-Forwarded-…` headers, which most proxies write. If they state neither scheme
    /// nor host, reads the standard header `Forwarded` (RFC 7239).
    fn read(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Forwarding {
        let last = |name: &str| Some(last_of(headers, name)?.to_ascii_lowercase());
        let common = Forwarding {
            scheme: last("x-forwarded-proto"),
            host: last("x-forwarded-host"),
            port: last("x-forwarded-port"),
        };
        match common {
            Forwarding { scheme: None, host: None, .. } => Forwarding::standard(headers, is_trusted),
            common => common,
        }
    }

    /// Returns the scheme and host in `Forwarded`. The elements are read from the last, which the
    /// nearest proxy wrote, to the first whose `for` is not a trusted proxy. Values that are read
    /// later replace earlier ones.
    fn standard(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Forwarding {
        let fields = headers.get_all(FORWARDED).iter().rev().filter_map(|field| field.to_str().ok());
        let mut found = Forwarding::default();
        for element in fields.flat_map(|field| field.rsplit(',')) {
            let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
            for (name, value) in pairs {
                let value = value.trim().trim_matches('"').to_ascii_lowercase();
                match name.trim().to_ascii_lowercase().as_str() {
                    "proto" => found.scheme = Some(value),
                    "host" => found.host = Some(value),
                    _ => {}
                }
            }
            if !forwarded_for(element).is_some_and(&is_trusted) {
                break;
            }
        }
        found
    }
}

/// Returns the last value of a list, which the nearest proxy wrote.
fn last_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let field = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    field.rsplit(',').next().map(str::trim).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn of(peer: &str, fields: &[(&str, &str)]) -> Option<String> {
        let request =
            fields.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
        let parts = request.body(()).unwrap().into_parts().0;
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        Site::of_request(&parts, peer.parse().unwrap(), &trusted, "http").map(|site| site.text)
    }

    #[test]
    fn a_site_is_the_host_as_clients_write_it() {
        for (host, expected) in [
            ("packages.corp:8080", Some("http://packages.corp:8080")),
            ("Packages.Corp:80", Some("http://packages.corp")),
            ("192.0.2.7:8080", Some("http://192.0.2.7:8080")),
            ("[2001:db8::1]:8080", Some("http://[2001:db8::1]:8080")),
            ("localhost", Some("http://localhost")),
            ("0.0.0.0:8080", None),
            ("0:8080", None),
            ("[::]:8080", None),
            ("[::ffff:0.0.0.0]", None),
            ("a.example:0", None),
            ("a.example:99999", None),
            ("a:b:c", None),
            ("", None),
        ] {
            assert_eq!(of("192.0.2.1", &[("host", host)]).as_deref(), expected, "{host}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_names_another_site() {
        let own = ("host", "inner:8080");
        for (fields, expected) in [
            (vec![("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")], "https://a.example"),
            (
                vec![("x-forwarded-host", "evil, a.example"), ("x-forwarded-port", "8443")],
                "http://a.example:8443",
            ),
            (vec![("x-forwarded-proto", "https")], "https://inner:8080"),
            (
                vec![("forwarded", "for=192.0.2.1;host=\"a.example:8443\";proto=https")],
                "https://a.example:8443",
            ),
            (
                vec![(
                    "forwarded",
                    "host=evil, for=192.0.2.1;host=a.example;proto=https, for=10.0.0.2;host=b;proto=http",
                )],
                "https://a.example",
            ),
            (vec![], "http://inner:8080"),
        ] {
            let fields: Vec<_> = fields.into_iter().chain([own]).collect();
            assert_eq!(of("10.0.0.1", &fields).as_deref(), Some(expected), "{fields:?}");
            assert_eq!(of("192.0.2.1", &fields).as_deref(), Some("http://inner:8080"), "{fields:?}");
        }
        assert_eq!(of("10.0.0.1", &[("x-forwarded-proto", "javascript"), own]), None);
    }

    #[test]
    fn the_name_has_no_port() {
        assert_eq!(Site::of("https://a.example:8443/x").unwrap().name(), "a.example");
        assert_eq!(Site::of("http://[::1]:8080").unwrap().name(), "[::1]");
    }
}
