//! The management API: JSON over HTTP, under `/v1`.
//!
//! Each handler describes its endpoint: method, path, right, body and responses. The router and the
//! OpenAPI document are made from these descriptions. Each call passes `call::serve`, which makes
//! its checks in the order of the API specification. It withholds the response if the handler did
//! not check its right.

mod access_keys;
mod activity;
mod advisories;
mod api_tokens;
mod attestations;
mod audit;
mod base_path;
mod body;
mod cache;
mod call;
mod compression;
mod credentials;
mod described;
mod details;
pub mod documents;
mod endpoint;
pub mod error;
mod error_response;
mod explain;
mod fields;
mod formats;
pub mod forms;
mod health;
mod jobs;
mod json;
mod logins;
mod members;
mod openapi;
pub mod operations;
mod organization;
mod packages;
mod paging;
mod plugins;
mod policies;
pub mod portal;
mod presented_credential;
pub mod publishers;
mod recordings;
mod reload;
pub mod repositories;
mod retention;
mod sbom;
mod scim;
pub mod scope;
mod search;
mod second_factor;
mod service_accounts;
mod sessions;
mod sso;
mod subscribers;
mod teams;
pub mod tokens;
mod trash;
mod upkeep;
mod webhooks;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use packhouse_app::App;

use call::EndpointState;
pub use call::address;
use compression::compressed;
use described::Described;
use error::ApiError;
use error_response::{no_such_method, no_such_path};
use openapi::OpenApiDocument;
pub use openapi::reference as openapi_document;

type HandlerResult = Result<Response, ApiError>;

/// First path segments of calls, health and metrics.
pub const FIRST_SEGMENTS: [&str; 5] = ["v1", "scim", "livez", "readyz", "metrics"];

/// Address at the other end of the connection. The listener adds it to each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// All endpoints, module by module.
fn endpoints() -> Vec<Described> {
    let modules = [
        sessions::endpoints(),
        activity::endpoints(),
        sso::endpoints(),
        scim::endpoints(),
        members::endpoints(),
        teams::endpoints(),
        explain::endpoints(),
        second_factor::endpoints(),
        subscribers::endpoints(),
        access_keys::endpoints(),
        repositories::endpoints(),
        packages::endpoints(),
        search::endpoints(),
        advisories::endpoints(),
        documents::endpoints(),
        sbom::endpoints(),
        organization::endpoints(),
        cache::endpoints(),
        upkeep::endpoints(),
        trash::endpoints(),
        retention::endpoints(),
        policies::endpoints(),
        tokens::endpoints(),
        api_tokens::endpoints(),
        service_accounts::endpoints(),
        publishers::endpoints(),
        logins::endpoints(),
        formats::endpoints(),
        plugins::endpoints(),
        audit::endpoints(),
        webhooks::endpoints(),
        recordings::endpoints(),
        reload::endpoints(),
        jobs::endpoints(),
        openapi::endpoints(),
    ];
    modules.into_iter().flatten().collect()
}

/// Router of the API and of the portal pages on the same listener, below the path of the public
/// address. Fails if a handler does not declare a right.
pub fn router(app: Arc<App>, pages: Router) -> anyhow::Result<Router> {
    let mut router = Router::new();
    for Described { mut paths, handler, .. } in endpoints() {
        let (endpoint, _) = openapi::endpoint(&app, &mut paths)?;
        for status in [500, 503] {
            call::count(&endpoint, status, 0);
        }
        let path = endpoint.path.clone();
        let served = EndpointState { app: Arc::clone(&app), endpoint: Arc::new(endpoint) };
        router = router.route(&path, handler.route_layer(from_fn_with_state(served, call::serve)));
    }
    let health = Router::new().route("/livez", get(health::live)).route("/readyz", get(health::ready));
    let mut router = router.merge(pages).merge(health.with_state(Arc::clone(&app)));
    if app.config.metrics_listen.is_none() {
        let guarded = Router::new().route("/metrics", get(health::guarded_metrics));
        router = router.merge(guarded.with_state(Arc::clone(&app)));
    }
    let router = router.fallback(no_such_path).method_not_allowed_fallback(no_such_method);
    // The layers wrap one fallback service, because a layer of a router is created again for each
    // of its hundreds of routes.
    let mut all = Router::new().fallback_service(router).layer(Extension(Arc::<OpenApiDocument>::default()));
    if app.config.compression {
        all = compressed(all);
    }
    Ok(all.layer(from_fn_with_state(app, base_path::translate)).layer(map_response(secured)))
}

/// Router with only `/metrics`, for a listener of its own.
pub fn metrics_router() -> Router {
    Router::new().route("/metrics", get(health::metrics))
}

/// Adds the security headers: responses are never rendered, framed, sniffed or cached. Without CORS
/// headers, no other origin can read them. A page brings its own policy, and immutable assets of
/// pages may be cached.
async fn secured(mut answer: Response) -> Response {
    let fields: [(HeaderName, &str); 5] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fields {
        // An existing header wins, because browsers allow only what two policies both allow.
        if !answer.headers().contains_key(&name) {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
    answer
}
