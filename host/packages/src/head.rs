//! The request as plugins see it: without its body and its credential, and only with the headers
//! that the format's description requests.

use std::sync::Arc;

use http::header::{ACCEPT, AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use packhouse_runtime::{Description, RequestHead};
use packhouse_store::RepositoryId;

use crate::resolve::RepositoryAddress;
use packhouse_identity as identity;

/// Text that replaces a token of this server in a path or a query.
const HIDDEN: &str = "***";
/// Headers that plugins never see, even if the description requests them.
const SECRETS: [&HeaderName; 3] = [&AUTHORIZATION, &COOKIE, &PROXY_AUTHORIZATION];

/// The values from which a request head is made.
#[derive(Clone, Copy)]
pub(crate) struct HeadSource<'a> {
    pub parts: &'a Parts,
    pub address: &'a RepositoryAddress,
    pub query: &'a [(String, String)],
    /// URL with which all links that plugins generate begin.
    pub base_url: &'a str,
    /// Name of the caller that plugins may see.
    pub caller: Option<&'a Arc<str>>,
    pub request_id: &'a Arc<str>,
    /// Tokens of this server in the path or the query. Each token comes with the id that replaces
    /// it.
    pub tokens: &'a [(String, String)],
    pub repository: Option<RepositoryId>,
}

/// Creates the request head, with the headers that this description requests.
pub(crate) fn head(source: HeadSource<'_>, description: &Description) -> Arc<RequestHead> {
    let HeadSource { parts, address, query, base_url, caller, request_id, tokens, repository } = source;
    let named = |text: &String| match tokens.iter().find(|(token, _)| token == text) {
        Some((_, id)) => id.clone(),
        None => without_token(text),
    };
    // Without a token, the path is not copied. Paths rarely contain a token.
    let is_plain = tokens.is_empty() && !address.path.iter().any(|text| identity::holds_token(text));
    let path = if is_plain { Arc::clone(&address.path) } else { address.path.iter().map(named).collect() };
    Arc::new(RequestHead {
        method: parts.method.as_str().to_owned(),
        claim: address.claim.as_ref().map(|claim| claim.name.clone()),
        path,
        query: query.iter().map(|(name, value)| (name.clone(), named(value))).collect(),
        headers: headers(&parts.headers, &description.request_headers),
        address: [base_url, &address.base].concat(),
        caller: caller.cloned(),
        request_id: Arc::clone(request_id),
        repository,
    })
}

/// Returns the text, or a placeholder if the text contains a token of this server.
fn without_token(text: &str) -> String {
    if identity::holds_token(text) { HIDDEN } else { text }.to_owned()
}

/// Returns `accept`, `content-*` and the requested headers, sorted by name. If a header has several
/// lines, they are joined.
fn headers(all: &HeaderMap, requested: &[String]) -> Vec<(String, String)> {
    let is_passed = |name: &HeaderName| {
        !SECRETS.contains(&name)
            && (name == ACCEPT
                || name.as_str().starts_with("content-")
                || requested.iter().any(|requested| name.as_str() == requested))
    };
    let mut headers: Vec<(String, String)> = all
        .keys()
        .filter(|name| is_passed(name))
        .map(|name| (name.as_str().to_owned(), joined(all, name)))
        .collect();
    headers.sort_unstable();
    headers
}

fn joined(all: &HeaderMap, name: &HeaderName) -> String {
    let lines: Vec<_> =
        all.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_requested_headers_reach_the_plugin() {
        let mut all = HeaderMap::new();
        for (name, value) in [
            ("accept", "a"),
            ("accept", "b"),
            ("content-type", "c"),
            ("authorization", "Bearer x"),
            ("cookie", "x"),
            ("x-requested", "d"),
            ("x-other", "e"),
        ] {
            all.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let requested = ["x-requested".to_owned(), "authorization".to_owned(), "cookie".to_owned()];
        let expected = [("accept", "a, b"), ("content-type", "c"), ("x-requested", "d")];
        assert_eq!(headers(&all, &requested), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_path_without_a_token_is_shared_and_one_with_a_token_is_not() {
        let (parts, ()) = http::Request::new(()).into_parts();
        let tokens = [("brought-in".to_owned(), "7".to_owned())];
        let description = Description::parse(r#"{"format": "x", "version": "1"}"#).unwrap();
        let path_of = |path: &[&str], tokens: &[(String, String)]| {
            let path: Arc<[String]> = path.iter().map(ToString::to_string).collect();
            let base = "/repositories/r".to_owned();
            let address = RepositoryAddress {
                name: None,
                path: Arc::clone(&path),
                encoded_slash: false,
                claim: None,
                base,
            };
            let (base_url, request_id) = ("http://localhost", &"id".into());
            let (query, caller, repository) = (&[][..], None, None);
            let source = HeadSource {
                parts: &parts,
                address: &address,
                query,
                base_url,
                caller,
                request_id,
                tokens,
                repository,
            };
            let head = head(source, &description);
            assert_eq!(head.address, "http://localhost/repositories/r");
            (Arc::ptr_eq(&head.path, &path), head.path.join("/"))
        };
        assert_eq!(path_of(&["a", "b"], &[]), (true, "a/b".to_owned()));
        assert_eq!(path_of(&["a", "pkh_b"], &[]), (false, "a/***".to_owned()));
        assert_eq!(path_of(&["a", "brought-in"], &tokens), (false, "a/7".to_owned()));
    }

    #[test]
    fn a_token_does_not_reach_a_plugin() {
        assert_eq!(without_token("pkh_abc"), HIDDEN);
        assert_eq!(without_token("abc"), "abc");
    }
}
