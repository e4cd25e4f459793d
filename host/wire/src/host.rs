//! Host that a request names (RFC 9112, section 3.2). A proxy in front and this server must find
//! the same host.

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Uri, Version};

/// Returns the host of a request in lower case: from the request target if it contains one,
/// otherwise from the `Host` header. `None` if an HTTP/1.0 request names no host. The error is a
/// sentence for the client: several `Host` headers, no host in HTTP/1.1, two different hosts, or an
/// invalid host name.
pub fn host(parts: &Parts) -> Result<Option<String>, &'static str> {
    match named(&parts.uri, &parts.headers)? {
        None if parts.version == Version::HTTP_11 => Err("The request has no Host header."),
        host => Ok(host),
    }
}

pub(crate) fn named(uri: &Uri, headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut fields = headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err("The request has several Host headers.");
    }
    let authority = uri.authority().map(|authority| read(authority.as_str().as_bytes())).transpose()?;
    let field = field.map(|field| read(field.as_bytes())).transpose()?;
    match (authority, field) {
        // A proxy in front may use the target or the header, so both must agree.
        (Some(authority), Some(field)) if !is_same(uri, &authority, &field) => {
            Err("The request target and the Host header name different hosts.")
        }
        (authority, field) => Ok(authority.or(field)),
    }
}

fn read(host: &[u8]) -> Result<String, &'static str> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte);
    match std::str::from_utf8(host) {
        Ok(text) if host.iter().all(allowed) => Ok(text.to_ascii_lowercase()),
        _ => Err("The Host header is not a valid host name."),
    }
}

/// Returns whether both name the same host. The default port of the target's scheme may be omitted.
fn is_same(uri: &Uri, one: &str, other: &str) -> bool {
    let default = match uri.scheme_str() {
        Some("https") => ":443",
        Some("http") => ":80",
        _ => "",
    };
    let plain = |host: &str| host.strip_suffix(default).unwrap_or(host).to_owned();
    plain(one) == plain(other)
}

/// Removes the port from a host. An IPv6 address keeps its brackets.
#[must_use]
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            // Without a bracket before the colon, the digits are the end of an IPv6 address and not
            // a port.
            if name.contains(':') && !name.ends_with(']') { host } else { name }
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let one = HeaderMap::from_iter([(HOST, "Other.example".parse().unwrap())]);
        let target = |text: &str| named(&text.parse().unwrap(), &one);
        assert_eq!(target("/").unwrap().unwrap(), "other.example");
        assert_eq!(target("http://OTHER.example:80/").unwrap().unwrap(), "other.example:80");
        for other in ["http://a.example:80/", "http://other.example:8080/", "https://other.example:80/"] {
            assert!(target(other).is_err(), "{other}");
        }
        assert_eq!(
            named(&"http://a.example/".parse().unwrap(), &HeaderMap::new()).unwrap().unwrap(),
            "a.example"
        );
        let mut two = one.clone();
        two.append(HOST, "b".parse().unwrap());
        assert!(named(&"/".parse().unwrap(), &two).is_err());
        let odd = HeaderMap::from_iter([(HOST, "a\"b".parse().unwrap())]);
        assert!(named(&"/".parse().unwrap(), &odd).is_err());
    }

    #[test]
    fn a_port_is_removed_from_the_name() {
        for (host, name) in [
            ("a.example", "a.example"),
            ("a.example:80", "a.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:8080", "127.0.0.1"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
