//! The portal: everything that a person does with a package server, as pages of the API's host. HTML that works with scripts switched
//! off; the scripts are this host's own and add comfort.
//!
//! A page judges nothing: it calls the typed operations that the JSON API calls, and shows their sentences. What a form says is judged
//! as the body of the call would be (`packhouse_api::forms`).
//!
//! `seat` is who sits at a page, `visit` finds out who that is and takes a form in, `sent` makes of a double click one thing, `confirm` asks once more who sits there;
//! `frame` is what every page has around it, `chart` draws numbers by day, `parts` and `field` what they are made of; `pages` are the pages, one file for each.

mod assets;
mod chart;
mod confirm;
mod dates;
mod draft;
mod fault;
mod field;
mod fields;
mod frame;
mod guest;
mod pages;
mod parts;
mod policy;
mod readme;
mod seat;
mod sent;
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

use readme::Readmes;
use sent::Sent;

/// What a page's handler gives back.
type Answer = Result<Response, ApiError>;

/// What the pages share.
pub(crate) struct Portal {
    /// The state of the program.
    pub(crate) app: Arc<App>,
    /// Forms that came in a moment ago.
    pub(crate) sent: Sent,
    /// READMEs as HTML.
    pub(crate) readmes: Readmes,
}

/// The pages, for the API's listener.
pub fn router(app: &Arc<App>) -> Router {
    let (sent, readmes) = (Sent::default(), Readmes::default());
    let portal = Arc::new(Portal { app: Arc::clone(app), sent, readmes });
    let mut router = Router::new();
    for (path, methods) in pages::all().into_iter().chain(assets::all()) {
        router = router.route(path, counted(path, methods));
    }
    router.route("/{*path}", any(no_such_page)).with_state(portal)
}

/// Answers for a path that is not there: a browser gets a page, and every other client the API's answer.
async fn no_such_page(request: Request) -> Response {
    let (error, id) = (ApiError::from(&catalogue::NOT_FOUND), request_id::next());
    if is_for_browser(&request) { visit::named(fault::alone(&error), &id) } else { error.into_answer(&id) }
}

fn is_for_browser(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    [Method::GET, Method::HEAD].contains(request.method())
        && accept.is_some_and(|accept| accept.contains("text/html"))
        && !FIRST_SEGMENTS.contains(&first_segment(request.uri().path()))
}

/// The first segments of the paths of all pages and assets.
pub fn first_segments() -> impl Iterator<Item = &'static str> {
    let paths = pages::all().into_iter().chain(assets::all()).map(|(path, _)| path);
    paths.map(first_segment).filter(|segment| !segment.is_empty())
}

/// Counts and logs what becomes of requests, by the page's pattern: the path itself may hold a code.
fn counted(path: &'static str, methods: MethodRouter<Arc<Portal>>) -> MethodRouter<Arc<Portal>> {
    methods.layer(from_fn(move |request: Request, next: Next| async move {
        let (started, method) = (Instant::now(), request.method().clone());
        let answer: Response = next.run(request).await;
        let status = answer.status().as_u16();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let id = answer.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        tracing::info!(request.id = id, %method, route = path, status, duration_ms, "page");
        metrics::counter!("packhouse_portal_pages_total", "route" => path, "method" => method.to_string(),
            "status" => status.to_string())
        .increment(1);
        answer
    }))
}
