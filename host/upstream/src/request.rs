//! A request to an upstream: its address, and the headers that a plugin may choose.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use packhouse_runtime::ServiceError;
use url::{Origin, Url};

/// A request to an upstream.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamRequest {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// True if the plugin gave the address relative to the upstream's. Only such requests carry
    /// credentials.
    pub below_upstream: bool,
}

/// The resolved address of a plugin's target.
#[derive(Debug)]
pub(crate) struct FetchTarget {
    pub url: Url,
    /// True if the plugin gave the target relative to the upstream's address.
    pub below_upstream: bool,
}

impl FetchTarget {
    /// Resolves a target that is absolute or relative to the upstream's address. `Invalid` if a
    /// relative target leaves the upstream's path, or if a target contains a user or password.
    pub(crate) fn resolve(upstream: &Url, target: &str) -> Result<FetchTarget, ServiceError> {
        let invalid = |why: &str| ServiceError::Invalid(format!("{why}: {target}"));
        if target.starts_with("http://") || target.starts_with("https://") {
            let mut url: Url = target.parse().map_err(|_| invalid("not an address"))?;
            let plain = url.username().is_empty() && url.password().is_none();
            url.set_fragment(None);
            return if plain {
                Ok(FetchTarget { url, below_upstream: false })
            } else {
                Err(invalid("an address with a credential"))
            };
        }
        let folder = format!("{}/", upstream.path().trim_end_matches('/'));
        let mut base = upstream.clone();
        base.set_path(&folder);
        // The `./` prevents a target such as `a:b` from being parsed as an address with a scheme.
        let relative = format!("./{}", target.trim_start_matches('/'));
        let url = base.join(&relative).map_err(|_| invalid("not an address"))?;
        if url.path().starts_with(&folder) && url.origin() == upstream.origin() {
            Ok(FetchTarget { url, below_upstream: true })
        } else {
            Err(invalid("not below the upstream's address"))
        }
    }
}

/// Returns true if two addresses have the same scheme, host and port.
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    matches!(one.origin(), Origin::Tuple(..)) && one.origin() == other.origin()
}

/// Returns the headers that a plugin sends. `Invalid` for a header that belongs to the connection,
/// the host or the cache.
pub(crate) fn plugin_headers(headers: &[(String, String)]) -> Result<HeaderMap, ServiceError> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || ServiceError::Invalid(format!("the header {name:?} cannot be sent"));
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        let value: HeaderValue = value.parse().map_err(|_| wrong())?;
        if NOT_FOR_PLUGINS.contains(&name.as_str()) {
            return Err(wrong());
        }
        all.append(name, value);
    }
    Ok(all)
}

const NOT_FOR_PLUGINS: [&str; 19] = [
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_lie_below_the_upstream_or_are_absolute() {
        let upstream: Url = "https://repo.test/files/".parse().unwrap();
        let at = |target: &str| {
            FetchTarget::resolve(&upstream, target).map(|it| (it.url.to_string(), it.below_upstream)).ok()
        };
        for (target, url, own) in [
            ("/a/b.jar", "https://repo.test/files/a/b.jar", true),
            ("a%2Fb?x=1", "https://repo.test/files/a%2Fb?x=1", true),
            ("?x=1", "https://repo.test/files/?x=1", true),
            ("data:x", "https://repo.test/files/data:x", true),
            ("\\a", "https://repo.test/files//a", true),
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
            FetchTarget::resolve(&bare, "@evil.test/x").unwrap().url.as_str(),
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
    fn a_plugin_cannot_send_headers_of_the_host() {
        let header = |name: &str, value: &str| plugin_headers(&[(name.to_owned(), value.to_owned())]);
        assert!(header("accept", "a/b").is_ok());
        for name in NOT_FOR_PLUGINS {
            assert!(header(name, "x").is_err(), "{name}");
        }
        assert!(header("a b", "x").is_err() && header("a", "x\r\ny: z").is_err());
    }
}
