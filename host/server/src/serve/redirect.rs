//! The plain listener beside TLS: it leads everybody to https, and answers authorities that look for a proof there (RFC 8555, section
//! 8.3).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use packhouse_app::App;
use packhouse_wire::host::host;
use url::Url;

/// The port of https, which no address names.
const HTTPS: u16 = 443;

/// The listener's service.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new().route("/.well-known/acme-challenge/{token}", get(proof)).fallback(redirect).with_state(app)
}

async fn proof(State(app): State<Arc<App>>, Path(token): Path<String>) -> Response {
    match app.proofs.over_http(&token).await {
        Some(answer) => ([(CONTENT_TYPE, "application/octet-stream")], answer).into_response(),
        None => (StatusCode::NOT_FOUND, "No such proof is waited for.\n").into_response(),
    }
}

async fn redirect(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let Ok(Some(host)) = host(&parts) else {
        return (StatusCode::BAD_REQUEST, "The request names no host.\n").into_response();
    };
    let name = without_port(&host);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let port = match port(&app, name) {
        HTTPS => String::new(),
        port => format!(":{port}"),
    };
    match HeaderValue::try_from(format!("https://{name}{port}{path}")) {
        Ok(location) => {
            (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)], "This is served over https.\n")
                .into_response()
        }
        Err(_) => (StatusCode::BAD_REQUEST, "The address is malformed.\n").into_response(),
    }
}

/// At which port the host of this name speaks TLS: the API where the name is its alone, else the repository host.
fn port(app: &App, name: &str) -> u16 {
    let (config, listening) = (&app.config, app.listening.get());
    let of = |url: &Option<Url>| {
        let url = url.as_ref().filter(|url| url.host_str() == Some(name) && url.scheme() == "https");
        url.and_then(Url::port_or_known_default)
    };
    let packages =
        listening.filter(|_| config.tls.serves_packages()).map(|listening| listening.packages.port());
    let api = listening.map(|listening| listening.api.port());
    of(&config.base_url).or_else(|| of(&config.api_url)).or(packages).or(api).unwrap_or(HTTPS)
}

/// The name alone; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_a_name() {
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
