//! The management API: JSON over HTTP, under `/v1`.
//!
//! The route table below is all of it. Each row names the right that it needs; a call passes `call::serve`, which judges
//! in the order of the API's description and lets no answer out whose right was not judged.

mod access_keys;
mod audit;
mod body;
mod cache;
mod call;
pub mod deletions;
pub mod error;
mod fields;
mod formats;
mod health;
mod json;
pub mod logins;
mod members;
mod openapi;
mod packages;
mod paging;
pub mod portal;
pub mod repositories;
mod route;
mod sessions;
mod shown;
mod sso;
mod subscribers;
pub mod tokens;
mod upkeep;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, map_response};
use axum::response::Response;
use axum::routing::{MethodFilter, get, on};
use http::Method;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

use error::ApiError;
use packhouse_app::App;
use packhouse_identity::permissions::Permission::{
    ManageOwnerAccount, ManageRepositories, ManageSubscribers,
};
use packhouse_wire::host::host;
use packhouse_wire::request_id;
use route::Right::{Anyone, Holds, OfObject, SignedIn};
use route::Route;
use route::Wants::{Json, Nothing};

/// What a handler gives back.
pub type Answer = Result<Response, ApiError>;

/// The address at the other end of the connection; the listener puts it into each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Every call there is, with the right that it needs.
fn routes() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        use Method as M;
        vec![
            Route::new(M::POST, "/v1/sessions", Anyone, Json, sessions::create),
            Route::new(M::DELETE, "/v1/sessions/current", SignedIn, Nothing, sessions::delete),
            Route::new(M::POST, "/v1/confirmations", SignedIn, Json, sessions::confirm),
            Route::new(M::GET, "/v1/sso", Holds(ManageOwnerAccount), Nothing, sso::show),
            Route::new(M::PUT, "/v1/sso", Holds(ManageOwnerAccount), Json, sso::change),
            Route::new(M::DELETE, "/v1/sso", Holds(ManageOwnerAccount), Nothing, sso::remove),
            Route::new(M::GET, "/v1/sso/start", Anyone, Nothing, sso::start),
            Route::new(M::GET, "/v1/sso/callback", Anyone, Nothing, sso::callback),
            Route::new(M::GET, "/v1/me", SignedIn, Nothing, members::me),
            Route::new(M::POST, "/v1/members", OfObject, Json, members::create),
            Route::new(M::GET, "/v1/members", OfObject, Nothing, members::list),
            Route::new(M::GET, "/v1/members/{id}", OfObject, Nothing, members::show),
            Route::new(M::DELETE, "/v1/members/{id}", OfObject, Nothing, members::remove),
            Route::new(M::PUT, "/v1/members/{id}/permissions", OfObject, Json, members::set_permissions),
            Route::new(M::POST, "/v1/members/{id}/password-reset", OfObject, Nothing, members::reset),
            Route::new(M::POST, "/v1/password-resets/{code}", Anyone, Json, members::complete),
            Route::new(M::POST, "/v1/invitations", OfObject, Json, members::invite),
            Route::new(M::POST, "/v1/invitations/{code}/accept", Anyone, Json, members::accept),
            Route::new(
                M::POST,
                "/v1/subscribers",
                Holds(ManageSubscribers),
                Json,
                subscribers::create_subscriber,
            ),
            Route::new(
                M::GET,
                "/v1/subscribers",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::list_subscribers,
            ),
            Route::new(
                M::GET,
                "/v1/subscribers/{id}",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::show_subscriber,
            ),
            Route::new(
                M::PATCH,
                "/v1/subscribers/{id}",
                Holds(ManageSubscribers),
                Json,
                subscribers::change_subscriber,
            ),
            Route::new(
                M::DELETE,
                "/v1/subscribers/{id}",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::remove_subscriber,
            ),
            Route::new(
                M::POST,
                "/v1/subscribers/{id}/access-keys",
                Holds(ManageSubscribers),
                Json,
                access_keys::create_for_subscriber,
            ),
            Route::new(
                M::GET,
                "/v1/subscribers/{id}/access-keys",
                Holds(ManageSubscribers),
                Nothing,
                access_keys::list_for_subscriber,
            ),
            Route::new(
                M::PATCH,
                "/v1/subscribers/{id}/access-keys/{key}",
                Holds(ManageSubscribers),
                Json,
                access_keys::change_for_subscriber,
            ),
            Route::new(
                M::DELETE,
                "/v1/subscribers/{id}/access-keys/{key}",
                Holds(ManageSubscribers),
                Nothing,
                access_keys::revoke_for_subscriber,
            ),
            Route::new(
                M::POST,
                "/v1/subscribers/{id}/access-keys/{key}/rotation",
                Holds(ManageSubscribers),
                Json,
                access_keys::rotate_for_subscriber,
            ),
            Route::new(
                M::POST,
                "/v1/subscriber-groups",
                Holds(ManageSubscribers),
                Json,
                subscribers::create_group,
            ),
            Route::new(
                M::GET,
                "/v1/subscriber-groups",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::list_groups,
            ),
            Route::new(
                M::GET,
                "/v1/subscriber-groups/{id}",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::show_group,
            ),
            Route::new(
                M::PATCH,
                "/v1/subscriber-groups/{id}",
                Holds(ManageSubscribers),
                Json,
                subscribers::change_group,
            ),
            Route::new(
                M::DELETE,
                "/v1/subscriber-groups/{id}",
                Holds(ManageSubscribers),
                Nothing,
                subscribers::remove_group,
            ),
            Route::new(
                M::POST,
                "/v1/subscriber-groups/{id}/access-keys",
                Holds(ManageSubscribers),
                Json,
                access_keys::create_for_group,
            ),
            Route::new(
                M::GET,
                "/v1/subscriber-groups/{id}/access-keys",
                Holds(ManageSubscribers),
                Nothing,
                access_keys::list_for_group,
            ),
            Route::new(
                M::PATCH,
                "/v1/subscriber-groups/{id}/access-keys/{key}",
                Holds(ManageSubscribers),
                Json,
                access_keys::change_for_group,
            ),
            Route::new(
                M::DELETE,
                "/v1/subscriber-groups/{id}/access-keys/{key}",
                Holds(ManageSubscribers),
                Nothing,
                access_keys::revoke_for_group,
            ),
            Route::new(
                M::POST,
                "/v1/subscriber-groups/{id}/access-keys/{key}/rotation",
                Holds(ManageSubscribers),
                Json,
                access_keys::rotate_for_group,
            ),
            Route::new(M::POST, "/v1/repositories", Holds(ManageRepositories), Json, repositories::create),
            Route::new(M::GET, "/v1/repositories", SignedIn, Nothing, repositories::list),
            Route::new(M::GET, "/v1/repositories/{id}", OfObject, Nothing, repositories::show),
            Route::new(
                M::PATCH,
                "/v1/repositories/{id}",
                Holds(ManageRepositories),
                Json,
                repositories::change,
            ),
            Route::new(
                M::DELETE,
                "/v1/repositories/{id}",
                Holds(ManageRepositories),
                Nothing,
                repositories::remove,
            ),
            Route::new(M::GET, "/v1/repositories/{id}/packages", OfObject, Nothing, packages::list),
            Route::new(
                M::GET,
                "/v1/repositories/{id}/cache",
                Holds(ManageRepositories),
                Nothing,
                cache::show,
            ),
            Route::new(
                M::DELETE,
                "/v1/repositories/{id}/cache",
                Holds(ManageRepositories),
                Nothing,
                cache::purge,
            ),
            Route::new(
                M::PUT,
                "/v1/repositories/{id}/upstream-credentials",
                Holds(ManageRepositories),
                Json,
                cache::set_credentials,
            ),
            Route::new(
                M::GET,
                "/v1/repositories/{id}/packages/{name}/versions",
                OfObject,
                Nothing,
                packages::versions,
            ),
            Route::new(
                M::DELETE,
                "/v1/repositories/{id}/packages/{name}",
                OfObject,
                Nothing,
                upkeep::delete_package,
            ),
            Route::new(
                M::DELETE,
                "/v1/repositories/{id}/packages/{name}/versions/{version}",
                OfObject,
                Nothing,
                upkeep::delete_version,
            ),
            Route::new(
                M::PUT,
                "/v1/repositories/{id}/packages/{name}/versions/{version}/state",
                OfObject,
                Json,
                upkeep::mark,
            ),
            Route::new(M::POST, "/v1/tokens", OfObject, Json, tokens::create),
            Route::new(M::GET, "/v1/tokens", OfObject, Nothing, tokens::list),
            Route::new(M::POST, "/v1/tokens/{id}/rotation", OfObject, Json, tokens::rotate),
            Route::new(M::DELETE, "/v1/tokens/{id}", OfObject, Nothing, tokens::revoke),
            Route::new(M::GET, "/v1/npm-logins/{id}", OfObject, Nothing, logins::show),
            Route::new(M::POST, "/v1/npm-logins/{id}/finish", OfObject, Json, logins::finish),
            Route::new(M::GET, "/v1/formats", Holds(ManageOwnerAccount), Nothing, formats::list),
            Route::new(M::PATCH, "/v1/formats/{format}", Holds(ManageOwnerAccount), Json, formats::change),
            Route::new(M::GET, "/v1/audit-events", Holds(ManageOwnerAccount), Nothing, audit::list),
            Route::new(M::GET, "/v1/openapi.json", Anyone, Nothing, openapi::document),
        ]
    })
}

/// The API as a service. Fails when a route is not described, or is described and not there.
pub fn router(app: Arc<App>) -> anyhow::Result<Router> {
    openapi::agrees(routes())?;
    let mut router = Router::new();
    for route in routes() {
        for status in [500, 503] {
            call::count(route, status, 0);
        }
        let app = Arc::clone(&app);
        let serve = move |request: Request| call::serve(Arc::clone(&app), route, request);
        router = router.route(route.path, on(MethodFilter::try_from(route.method.clone())?, serve));
    }
    if app.config.metrics_listen.is_none() {
        router = router.merge(metrics_router());
    }
    let health = Router::new().route("/livez", get(health::live)).route("/readyz", get(health::ready));
    Ok(router
        .merge(logins::router().with_state(Arc::clone(&app)))
        .merge(health.with_state(app))
        .fallback(call::no_such_path)
        .method_not_allowed_fallback(call::no_such_method)
        .layer(from_fn(one_host))
        .layer(map_response(secured)))
}

/// `/metrics` alone, for a listener of its own.
pub fn metrics_router() -> Router {
    Router::new().route("/metrics", get(health::metrics))
}

/// 400 `invalid_request` for a request that does not name one host: what stands in front may have read another.
async fn one_host(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match host(&parts) {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(sentence) => ApiError::invalid(sentence).into_answer(&request_id::next()),
    }
}

/// What every answer carries: it is never rendered, framed, sniffed or kept. There is no CORS: no other origin may read it.
async fn secured(mut answer: Response) -> Response {
    let fields: [(HeaderName, &str); 5] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    // A page has a policy of its own, which is as narrow as it can be.
    let own =
        [CONTENT_SECURITY_POLICY, REFERRER_POLICY].map(|name| (answer.headers().get(&name).cloned(), name));
    for (name, value) in fields {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    // In the place of the general ones: of two policies a browser takes what both allow.
    for (value, name) in own {
        if let Some(value) = value {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}
