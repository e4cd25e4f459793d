//! The plain HTTP listener beside TLS. It redirects to https and answers ACME challenges (RFC 8555,
//! section 8.3).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use packhouse_app::App;
use packhouse_wire::host::{host, without_port};
use rustls::pki_types::ServerName;
use url::Url;

/// The https port that URLs leave out.
const HTTPS: u16 = 443;

/// Builds the router of the listener.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new().route("/.well-known/acme-challenge/{token}", get(proof)).fallback(redirect).with_state(app)
}

async fn proof(State(app): State<Arc<App>>, Path(token): Path<String>) -> Response {
    match app.proofs.over_http(&token).await {
        Some(answer) => ([(CONTENT_TYPE, "application/octet-stream")], answer).into_response(),
        None => (StatusCode::NOT_FOUND, "There is no such challenge.\n").into_response(),
    }
}

async fn redirect(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let Ok(Some(host)) = host(&parts) else {
        return (StatusCode::BAD_REQUEST, "The request has no host.\n").into_response();
    };
    let name = without_port(&host);
    if !is_served(&app, name).await {
        return (StatusCode::MISDIRECTED_REQUEST, "This server does not serve that host.\n").into_response();
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let port = match port(&app, name) {
        HTTPS => String::new(),
        port => format!(":{port}"),
    };
    match HeaderValue::try_from(format!("https://{name}{port}{path}")) {
        Ok(location) => {
            (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)], "Use https for this address.\n")
                .into_response()
        }
        Err(_) => (StatusCode::BAD_REQUEST, "The address is malformed.\n").into_response(),
    }
}

/// Returns true for the names that clients are redirected to: of a public address, an organization
/// or a served certificate. A request with another host name gets no redirect, so nobody can lead
/// clients elsewhere.
async fn is_served(app: &App, name: &str) -> bool {
    let (config, secured) = (&app.config, app.secured());
    let public = [&config.base_url, &config.api_url];
    if public.into_iter().flatten().any(|url| url.host_str() == Some(name)) {
        return true;
    }
    let server = ServerName::try_from(name.trim_matches(['[', ']'])).ok();
    let listeners = [&secured.packages, &secured.api].into_iter().flatten();
    if let Some(server) = server
        && listeners.into_iter().any(|tls| tls.served().iter().any(|certificate| certificate.is_for(&server)))
    {
        return true;
    }
    let organizations = app.store.organizations().await.unwrap_or_default();
    organizations.iter().filter_map(|row| row.host.as_deref()).any(|host| without_port(host) == name)
}

/// Returns the TLS port for this host name: the API's if the name belongs only to the API, else the
/// repository host's.
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
