//! Answers while the store is opened, which may take long after an upgrade. For two seconds,
//! connecting clients wait for the server itself. After that they get 503 with the reason and
//! Retry-After, and `/livez` succeeds.
//!
//! A TLS listener uses the certificates from files. A listener with ACME certificates does not
//! answer this early, because its certificates are in the store.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use http::header::{CONNECTION, RETRY_AFTER};
use hyper_util::service::TowerToHyperService;
use packhouse_app::readiness::{PLUGIN, Problem};
use packhouse_config::Config;
use packhouse_config::live::Live;
use packhouse_config::tls::CertificateFiles;
use packhouse_runtime::compiling;
use packhouse_wire::catalogue::SERVER_STARTING;
use packhouse_wire::listen::{self, Holds, ListenerRules, Windows};
use packhouse_wire::request_id;
use packhouse_wire::tls::Tls;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Sockets, certificates};

/// How long connections wait before they get an answer. A start with all plugins compiled takes
/// less, so its clients just wait instead of being sent away.
const HOLD: Duration = Duration::from_secs(2);
/// Maximum number of connections on each listener. All responses are short errors.
const CONNECTIONS: usize = 256;
/// How long responses in progress may take at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The sockets, and the tasks that answer on them during the start.
pub(super) struct Starting {
    sockets: Sockets,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Starting {
    /// Starts to answer once the start takes longer than [`HOLD`].
    pub(super) fn answer(config: &Config, sockets: Sockets) -> anyhow::Result<Starting> {
        let (stop, mut tasks) = (CancellationToken::new(), Vec::new());
        let rules = rules(config, &stop);
        let Sockets { packages, api, metrics, redirect } = sockets;
        let mut shared =
            |listener: TcpListener, files: &[CertificateFiles], host: &str| -> anyhow::Result<TcpListener> {
                let tls = secured(config, files, host)?;
                if tls.is_none() && config.tls.acme.is_some() {
                    return Ok(listener);
                }
                let (retained, answered) = twice(listener)?;
                let (router, rules) = (answers(), rules.clone().with_tls(tls));
                let answering = move |_| TowerToHyperService::new(router.clone());
                let stop = stop.clone();
                tasks.push(tokio::spawn(async move {
                    if tokio::time::timeout(HOLD, stop.cancelled()).await.is_err() {
                        listen::serve(answered, rules, answering).await;
                    }
                }));
                Ok(retained)
            };
        let packages = shared(packages, &config.tls.packages, "packages")?;
        let api = api.map(|api| shared(api, &config.tls.api, "api")).transpose()?;
        Ok(Starting { sockets: Sockets { packages, api, metrics, redirect }, stop, tasks })
    }

    /// Stops answering and returns the sockets. Clients that connect in between wait.
    pub(super) async fn end(self) -> Sockets {
        self.stop.cancel();
        for task in self.tasks {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, task).await;
        }
        self.sockets
    }
}

/// Returns TLS with the certificates from these files; None without files.
fn secured(config: &Config, files: &[CertificateFiles], host: &str) -> anyhow::Result<Option<Arc<Tls>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let tls = Tls::new(None).context("failed to prepare TLS")?;
    tls.serve(certificates::load(config, files, host)?);
    Ok(Some(Arc::new(tls)))
}

/// Duplicates the socket, so that one of the two stays open when the other one is closed.
fn twice(listener: TcpListener) -> std::io::Result<(TcpListener, TcpListener)> {
    let one = listener.into_std()?;
    let other = one.try_clone()?;
    Ok((TcpListener::from_std(one)?, TcpListener::from_std(other)?))
}

fn rules(config: &Config, stop: &CancellationToken) -> ListenerRules {
    ListenerRules {
        limits: Live::new(config.limits),
        connections: CONNECTIONS.min(config.limits.connections),
        requests: None,
        trusted: Live::new(config.trusted_proxies.clone()),
        proxy_protocol: config.proxy_protocol,
        tls: None,
        hsts: None,
        windows: Windows::CALLS,
        budget: Arc::default(),
        holds: Holds::ByLength,
        is_call: None,
        draining: stop.clone(),
        stop: stop.clone(),
    }
}

fn answers() -> Router {
    Router::new().route("/livez", get(|| async { "ok\n" })).fallback(refuse)
}

/// Responds with 503, also to `/readyz`, and lists the plugins that are being compiled. It closes
/// the connection so that the next request reaches the server itself.
async fn refuse(_: Request) -> Response {
    let id = request_id::next();
    let degraded = compiling().into_iter().map(|plugin| {
        let detail = format!("The plugin {} is being compiled.", plugin.name);
        Problem { what: PLUGIN, since: plugin.since, detail }
    });
    let degraded: Vec<Problem> = degraded.collect();
    let body = json!({
        "status": "unavailable",
        "degraded": degraded,
        "age_ms": null,
        "error": SERVER_STARTING.code,
        "message": SERVER_STARTING.sentence,
        "request_id": &*id,
    });
    let retry = SERVER_STARTING.retry_after().unwrap_or_default();
    let headers = [(RETRY_AFTER, retry.to_string()), (CONNECTION, "close".to_owned())];
    (StatusCode::SERVICE_UNAVAILABLE, headers, Json(body)).into_response()
}
