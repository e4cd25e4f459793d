//! The one host that a request names (RFC 9112, section 3.2): what a proxy in front and this server must not read differently.

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Uri, Version};

/// The host that is meant, in lower case: the target's own where it has one, else that of the one `Host` field there may be. None
/// where HTTP/1.0 names none. The error is a sentence for the caller: several fields, none in HTTP/1.1, or no host's name.
pub fn host(parts: &Parts) -> Result<Option<String>, &'static str> {
    match named(&parts.uri, &parts.headers)? {
        None if parts.version == Version::HTTP_11 => Err("The request has no Host field."),
        host => Ok(host),
    }
}

fn named(uri: &Uri, headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut fields = headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err("The request has several Host fields.");
    }
    let host = match (uri.authority(), field) {
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(field)) => field.as_bytes(),
        (None, None) => return Ok(None),
    };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte);
    match std::str::from_utf8(host) {
        Ok(text) if host.iter().all(allowed) => Ok(Some(text.to_ascii_lowercase())),
        _ => Err("The Host field is no host's name."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_own_host_decides() {
        let one = HeaderMap::from_iter([(HOST, "Other.example".parse().unwrap())]);
        assert_eq!(named(&"/".parse().unwrap(), &one).unwrap().unwrap(), "other.example");
        assert_eq!(named(&"http://a.example:80/".parse().unwrap(), &one).unwrap().unwrap(), "a.example:80");
        let mut two = one.clone();
        two.append(HOST, "b".parse().unwrap());
        assert!(named(&"/".parse().unwrap(), &two).is_err());
        let odd = HeaderMap::from_iter([(HOST, "a\"b".parse().unwrap())]);
        assert!(named(&"/".parse().unwrap(), &odd).is_err());
    }
}
