//! Addresses of management APIs on the command line.

use anyhow::{Context, ensure};
use url::{Host, Url};

/// Parses the address of an API. The address may have a path, below which the API answers.
pub(super) fn parse(text: &str) -> anyhow::Result<Url> {
    let mut url = Url::parse(text).with_context(|| {
        format!("{text:?} is not the address of a server; write it like https://packages.example.com")
    })?;
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "the address of the server must not contain a credential, because every user of this machine can read it there"
    );
    ensure!(
        matches!(url.scheme(), "http" | "https") && url.has_host(),
        "the address {text:?} must begin with https:// or http://"
    );
    ensure!(
        url.query().is_none() && url.fragment().is_none(),
        "the address {text:?} must end with its path: remove the query and the fragment"
    );
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Returns the address as it names the server in the file of logins: without a slash at its end.
pub(super) fn key(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Fails if requests to this address would carry the API token over a network without encryption.
pub(super) fn check_encryption(url: &Url, insecure: bool) -> anyhow::Result<()> {
    ensure!(
        url.scheme() == "https" || is_loopback(url) || insecure,
        "everyone on the way to {} could read the API token, because the connection is not encrypted: use https, or \
         add --insecure",
        key(url)
    );
    Ok(())
}

/// Returns whether the address leads to this machine itself.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path() {
        for (text, expected) in [
            ("https://a.example", "https://a.example"),
            ("https://A.example/", "https://a.example"),
            ("http://127.0.0.1:8081/portal/", "http://127.0.0.1:8081/portal"),
        ] {
            assert_eq!(key(&parse(text).unwrap()), expected);
        }
        for wrong in ["a.example", "ftp://a.example", "https://u:p@a.example", "https://a.example/?x", "/v1"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_goes_unencrypted_only_to_this_machine() {
        let check = |text: &str, insecure: bool| check_encryption(&parse(text).unwrap(), insecure).is_ok();
        for text in ["https://a.example", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost:8081"] {
            assert!(check(text, false), "{text}");
        }
        for text in ["http://a.example", "http://10.0.0.1", "http://localhost.a.example"] {
            assert!(!check(text, false) && check(text, true), "{text}");
        }
    }
}
