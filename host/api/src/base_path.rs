//! Handles the path of the portal and the API in their public address. Requests lose it here; links
//! and redirects get it here. Handlers and pages write paths as if they were at the root. This
//! module also determines the site of a request.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri};
use packhouse_app::App;
use packhouse_wire::host::host;
use packhouse_wire::path::below;
use packhouse_wire::request_id;
use packhouse_wire::site::Site;

use crate::Peer;
use crate::error::ApiError;

/// Header that carries the request's site to handlers that receive only the header fields. A value
/// from the client is removed.
pub(crate) const SITE: HeaderName = HeaderName::from_static("packhouse-site");

/// HTML attributes whose value is an address.
const ADDRESSES: [&str; 4] = ["href", "action", "src", "formaction"];

/// Removes the path from the request and adds it to the links of the response. 400
/// `invalid_request` if the request does not name exactly one host, because a proxy in front may
/// have chosen another one.
pub(crate) async fn translate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Err(sentence) = host(&parts) {
        return ApiError::invalid(sentence).into_answer(&request_id::next());
    }
    set_site(&app, &mut parts);
    let path = app.config.api_path();
    if path.is_empty() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    if let Some(inner) = strip(&parts.uri, path) {
        parts.uri = inner;
    }
    prefix_links(next.run(Request::from_parts(parts, body)).await, path).await
}

fn set_site(app: &App, parts: &mut Parts) {
    let peer = parts.extensions.get::<Peer>().map_or([0, 0, 0, 0].into(), |peer| peer.0);
    let site = Site::of_request(parts, peer, &app.live.trusted_proxies.get(), app.api_scheme());
    parts.headers.remove(SITE);
    if let Some(site) = site {
        if let Ok(text) = HeaderValue::from_str(site.as_str()) {
            parts.headers.insert(SITE, text);
        }
        parts.extensions.insert(site);
    }
}

/// Removes the path from the address; `None` if the address is not below it.
fn strip(uri: &Uri, path: &str) -> Option<Uri> {
    let rest = below(uri.path(), path)?;
    let inner = match uri.query() {
        Some(query) => format!("{rest}?{query}"),
        None => rest.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(inner).ok()?);
    Uri::from_parts(parts).ok()
}

/// Puts the path in front of a redirect's location and of a page's links.
async fn prefix_links(mut answer: Response, path: &str) -> Response {
    let location = answer.headers().get(LOCATION).and_then(|field| field.to_str().ok());
    if let Some(location) = location.and_then(|location| with_prefix(location, path)) {
        let is_sensitive = answer.headers().get(LOCATION).is_some_and(HeaderValue::is_sensitive);
        if let Ok(mut location) = HeaderValue::try_from(location) {
            location.set_sensitive(is_sensitive);
            answer.headers_mut().insert(LOCATION, location);
        }
    }
    let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !kind.starts_with(b"text/html") {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    // A page is one text in memory and arrives as a whole.
    #[expect(clippy::disallowed_methods, reason = "a page was made as one text in memory")]
    match to_bytes(body, usize::MAX).await {
        Ok(page) => {
            let page = prefix_page(&String::from_utf8_lossy(&page), path);
            Response::from_parts(parts, Body::from(page))
        }
        Err(error) => ApiError::from(anyhow::Error::from(error)).into_answer(&request_id::next()),
    }
}

/// Puts the path in front of an address on this host. `None` for another host and for an address
/// that already has the path, as a `return_to` may. The server does not start with a path that
/// begins like a page or a call. So no page's own address looks as if it already had the path.
fn with_prefix(address: &str, path: &str) -> Option<String> {
    let own = address.starts_with('/') && !address.starts_with("//");
    let inner = address.split(['?', '#']).next().unwrap_or_default();
    (own && below(inner, path).is_none()).then(|| format!("{path}{address}"))
}

/// Puts the path in front of each address on this host in a page. This program writes the pages.
/// Attributes are in double quotes, their values contain no literal quote, and text outside of tags
/// contains no literal `<`.
fn prefix_page(page: &str, path: &str) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 16);
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let (tag, after) = tag.split_at(tag_end(tag));
        text.push_str(before);
        push_tag_prefixed(&mut text, tag, path);
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Returns the end of a tag: after the first `>` outside of a quoted value.
fn tag_end(tag: &str) -> usize {
    let mut in_value = false;
    let end = tag.bytes().position(|byte| {
        in_value ^= byte == b'"';
        byte == b'>' && !in_value
    });
    end.map_or(tag.len(), |end| end + 1)
}

fn push_tag_prefixed(text: &mut String, tag: &str, path: &str) {
    let mut pieces = tag.split('"');
    let mut name = pieces.next().unwrap_or_default();
    text.push_str(name);
    // Attribute names and values alternate.
    while let Some(value) = pieces.next() {
        let attribute = name.trim_end().strip_suffix('=').unwrap_or_default();
        let is_address = ADDRESSES.iter().any(|known| {
            attribute.strip_suffix(known).is_some_and(|before| before.ends_with(char::is_whitespace))
        });
        let prefixed = is_address.then(|| with_prefix(value, path)).flatten();
        text.push('"');
        text.push_str(prefixed.as_deref().unwrap_or(value));
        if let Some(next) = pieces.next() {
            text.push('"');
            text.push_str(next);
            name = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_removed_from_a_request() {
        let inner = |uri: &str| strip(&uri.parse().unwrap(), "/portal").map(|uri| uri.to_string());
        assert_eq!(inner("/portal/v1/me?a=b").as_deref(), Some("/v1/me?a=b"));
        assert_eq!(inner("/portal").as_deref(), Some("/"));
        assert_eq!(inner("https://a.example/portal/x").as_deref(), Some("https://a.example/x"));
        assert_eq!(inner("/portals/v1/me"), None);
    }

    #[test]
    fn addresses_of_this_host_get_the_path() {
        let outer = |address: &str| with_prefix(address, "/portal");
        assert_eq!(outer("/sign-in?return_to=%2F").as_deref(), Some("/portal/sign-in?return_to=%2F"));
        assert_eq!(outer("/").as_deref(), Some("/portal/"));
        for other in
            ["/portal", "/portal/x", "/portal?a", "//evil.example", "https://a.example/", "?page=2", "#main"]
        {
            assert_eq!(outer(other), None, "{other}");
        }
    }

    #[test]
    fn links_of_a_page_get_the_path_but_its_text_does_not() {
        let page = r#"<a class="x > y" href="/tokens">href="/tokens"</a><img alt="" src="/a.png"><a href="https://b/">"#;
        let expected = r#"<a class="x > y" href="/portal/tokens">href="/tokens"</a><img alt="" src="/portal/a.png"><a href="https://b/">"#;
        assert_eq!(prefix_page(page, "/portal"), expected);
        for same in [
            r##"<p title="href=/x">a</p>"##,
            r##"<a data-href="/x" href="#main">"##,
            r##"<input name="q" value="/tokens">"##,
            "<",
            "<a href=\"",
            "",
        ] {
            assert_eq!(prefix_page(same, "/portal"), same);
        }
        assert_eq!(
            prefix_page(r#"<form method="post" action="/x"><b>"#, "/p"),
            r#"<form method="post" action="/p/x"><b>"#
        );
    }
}
