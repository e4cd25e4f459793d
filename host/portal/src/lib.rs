//! The portal: web pages on the API's host for everything that a person does with a package server.
//! The HTML works without scripts; the scripts come from this host and only add convenience.
//!
//! Pages contain no business rules. They call the typed operations that the JSON API calls, and
//! show the error sentences of these operations. A form is validated like the body of the
//! corresponding API call (`packhouse_api::forms`).
//!
//! - `page_context`: the signed-in member and the request that a page handler works with.
//! - `visit`: authenticates requests and receives forms.
//! - `guest`: the same for pages that need no session.
//! - `form_dedup`: processes a form that is submitted twice only once.
//! - `confirm`: asks the member for a fresh confirmation.
//! - `frame` and `navigation`: the layout around every page.
//! - `parts`, `field` and `chart`: building blocks of pages.
//! - `pages`: the pages, one file each.

mod assets;
mod chart;
mod confirm;
mod dates;
mod draft;
mod fault;
mod field;
mod fields;
mod form_dedup;
mod frame;
mod guest;
mod navigation;
mod page_context;
mod pages;
mod parts;
mod policy;
mod readme;
mod visit;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodRouter, any};
use http::Method;
use http::header::ACCEPT;
use packhouse_api::FIRST_SEGMENTS;
use packhouse_api::error::ApiError;
use packhouse_app::App;
use packhouse_config::addresses::first_segment;
use packhouse_wire::{catalogue, request_id};

use form_dedup::FormDedup;
use readme::Readmes;

/// Result of a page handler.
type PageResult = Result<Response, ApiError>;

/// State shared by all pages.
pub(crate) struct Portal {
    pub(crate) app: Arc<App>,
    /// Forms submitted in the last few seconds.
    pub(crate) form_dedup: FormDedup,
    /// Cache of READMEs rendered to HTML.
    pub(crate) readmes: Readmes,
}

/// Builds the router of all pages and assets, for the API's listener.
pub fn router(app: &Arc<App>) -> Router {
    let (form_dedup, readmes) = (FormDedup::default(), Readmes::default());
    let portal = Arc::new(Portal { app: Arc::clone(app), form_dedup, readmes });
    let mut router = Router::new();
    for (path, methods) in pages::all().into_iter().chain(assets::all()) {
        router = router.route(path, counted(path, methods));
    }
    router.route("/{*path}", any(no_such_page)).with_state(portal)
}

/// Responds to an unknown path: a browser gets a page, every other client the API's error.
async fn no_such_page(request: Request) -> Response {
    let (error, id) = (ApiError::from(&catalogue::NOT_FOUND), request_id::next());
    if is_for_browser(&request) {
        visit::with_request_id(fault::guest_error_page(&error), &id)
    } else {
        error.into_answer_at(request.uri().path(), &id)
    }
}

fn is_for_browser(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    [Method::GET, Method::HEAD].contains(request.method())
        && accept.is_some_and(|accept| accept.contains("text/html"))
        && !FIRST_SEGMENTS.contains(&first_segment(request.uri().path()))
}

/// Returns the first path segment of every page and asset.
pub fn first_segments() -> impl Iterator<Item = &'static str> {
    let paths = pages::all().into_iter().chain(assets::all()).map(|(path, _)| path);
    paths.map(first_segment).filter(|segment| !segment.is_empty())
}

/// Counts and logs requests by the route pattern, because the path itself may contain a secret
/// code.
fn counted(path: &'static str, methods: MethodRouter<Arc<Portal>>) -> MethodRouter<Arc<Portal>> {
    methods.layer(from_fn(move |request: Request, next: Next| async move {
        let (started, method) = (Instant::now(), request.method().clone());
        let response: Response = next.run(request).await;
        let status = response.status().as_u16();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        tracing::info!(request.id = id, %method, route = path, status, duration_ms, "page");
        metrics::counter!("packhouse_portal_pages_total", "route" => path, "method" => method.to_string(),
            "status" => status.to_string())
        .increment(1);
        response
    }))
}
