//! A single listener for both hosts: portal and API below their path, `/metrics`, and packages
//! everywhere else. Limits, metrics and responses are the same as on separate listeners.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use http::Request;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::service_fn;
use packhouse_app::App;
use packhouse_packages::Packages;
use packhouse_wire::listen::{self, ListenerRules};
use packhouse_wire::path::below;
use tokio::net::TcpListener;

use super::answer;

/// Serves both hosts until the server stops and all requests in flight are answered.
pub(super) async fn run(app: Arc<App>, router: Router, listener: TcpListener) {
    let calls = Arc::clone(&app);
    let is_call = move |path: &str| is_for_api(&calls, path);
    let rules = ListenerRules { is_call: Some(Arc::new(is_call)), ..Packages::rules(&app) };
    let (packages, meters) = (Packages::start(Arc::clone(&app)), Arc::clone(&app.meters.api));
    let make = move |peer: SocketAddr| {
        let (app, packages, router) = (Arc::clone(&app), packages.clone(), router.clone());
        let meters = Arc::clone(&meters);
        service_fn(move |request: Request<Incoming>| {
            let (app, packages, router) = (Arc::clone(&app), packages.clone(), router.clone());
            let meters = Arc::clone(&meters);
            async move {
                if !is_for_api(&app, request.uri().path()) {
                    return Ok::<_, Infallible>(packages.answer(peer, request).await.map(Either::Left));
                }
                let trusted = app.live.trusted_proxies.get();
                let answered = answer(router, &meters, &trusted, peer, request).await;
                Ok(answered.map(Either::Right))
            }
        })
    };
    listen::serve(listener, rules, make).await;
}

fn is_for_api(app: &App, path: &str) -> bool {
    path == "/metrics" || below(path, app.config.api_path()).is_some()
}
