//! A request as plugins see it: without its body, without credentials, and with no header that the description does not ask for.

use std::sync::Arc;

use http::header::{ACCEPT, AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use packhouse_runtime::{Description, RequestHead};
use packhouse_store::RepositoryId;

use crate::resolve::RepositoryAddress;
use packhouse_identity as identity;

/// What stands in for a token of this host's in a path or a query.
const HIDDEN: &str = "***";
/// Never handed on, whatever a description asks for.
const SECRETS: [&HeaderName; 3] = [&AUTHORIZATION, &COOKIE, &PROXY_AUTHORIZATION];

/// What a head is made of.
#[derive(Clone, Copy)]
pub(crate) struct HeadSource<'a> {
    /// The request without its body.
    pub parts: &'a Parts,
    /// Where its path leads.
    pub address: &'a RepositoryAddress,
    /// Its query.
    pub query: &'a [(String, String)],
    /// What links start with.
    pub base_url: &'a str,
    /// Who asks, as it may be shown.
    pub caller: Option<&'a Arc<str>>,
    /// The request's id.
    pub request_id: &'a Arc<str>,
    /// The tokens of this host's that stand in the path or the query, each with its id, which takes its place.
    pub tokens: &'a [(String, String)],
    /// The repository that it is about.
    pub repository: Option<RepositoryId>,
}

/// Makes the head, with the headers that this description asks for.
pub(crate) fn head(source: HeadSource<'_>, description: &Description) -> Arc<RequestHead> {
    Arc::new(whole(source, description))
}

/// The same, not shared.
pub(crate) fn whole(source: HeadSource<'_>, description: &Description) -> RequestHead {
    let HeadSource { parts, address, query, base_url, caller, request_id, tokens, repository } = source;
    let named = |text: &String| match tokens.iter().find(|(token, _)| token == text) {
        Some((_, id)) => id.clone(),
        None => without_token(text),
    };
    // Where no token stands in it, which is nearly always, the path is not copied.
    let is_plain = tokens.is_empty() && !address.path.iter().any(|text| identity::holds_token(text));
    let path = if is_plain { Arc::clone(&address.path) } else { address.path.iter().map(named).collect() };
    RequestHead {
        method: parts.method.as_str().to_owned(),
        claim: address.claim.as_ref().map(|claim| claim.name.clone()),
        path,
        query: query.iter().map(|(name, value)| (name.clone(), named(value))).collect(),
        headers: headers(&parts.headers, &description.request_headers),
        address: [base_url, &address.base].concat(),
        caller: caller.cloned(),
        request_id: Arc::clone(request_id),
        repository,
        aside: None,
    }
}

/// A text with a token of this host's taken out.
fn without_token(text: &str) -> String {
    if identity::holds_token(text) { HIDDEN } else { text }.to_owned()
}

/// `accept`, `content-*` and what was asked for, each name once with its lines joined, in the order of the names.
fn headers(all: &HeaderMap, asked: &[String]) -> Vec<(String, String)> {
    let wanted = |name: &HeaderName| {
        !SECRETS.contains(&name)
            && (name == ACCEPT
                || name.as_str().starts_with("content-")
                || asked.iter().any(|asked| name.as_str() == asked))
    };
    let mut headers: Vec<(String, String)> = all
        .keys()
        .filter(|name| wanted(name))
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
    fn only_what_is_asked_for_is_handed_on() {
        let mut all = HeaderMap::new();
        for (name, value) in [
            ("accept", "a"),
            ("accept", "b"),
            ("content-type", "c"),
            ("authorization", "Bearer x"),
            ("cookie", "x"),
            ("x-asked", "d"),
            ("x-other", "e"),
        ] {
            all.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let asked = ["x-asked".to_owned(), "authorization".to_owned(), "cookie".to_owned()];
        let expected = [("accept", "a, b"), ("content-type", "c"), ("x-asked", "d")];
        assert_eq!(headers(&all, &asked), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
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
            let head = whole(source, &description);
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
