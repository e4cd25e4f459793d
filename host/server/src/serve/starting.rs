//! What is answered while the store is opened, which may take its time after an upgrade. For two seconds clients that connect wait for the
//! server itself. From then on it says that it lives, that it is not ready and why, and asks everybody to come back.
//!
//! A listener that speaks TLS does so with the certificates of its files. One whose certificates an authority gives does not answer so
//! early: they lie in the store.

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
use packhouse_wire::listen::{self, Holds, Rules, Windows};
use packhouse_wire::request_id;
use packhouse_wire::tls::Tls;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Sockets, certificates};

/// How long nobody is answered at first: a start with everything compiled is over by then, and who connects meanwhile waits for it
/// instead of being sent away.
const HOLD: Duration = Duration::from_secs(2);
/// Connections at one time, on each listener: there is nothing to be had.
const CONNECTIONS: usize = 256;
/// How long the answers that are under way at the end may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Sockets that are answered on until the server can.
pub(super) struct Starting {
    sockets: Sockets,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Starting {
    /// Answers as soon as the start takes longer than usual.
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
                let (kept, answered) = twice(listener)?;
                let (router, rules) = (answers(), rules.clone().with_tls(tls));
                let answering = move |_| TowerToHyperService::new(router.clone());
                let stop = stop.clone();
                tasks.push(tokio::spawn(async move {
                    if tokio::time::timeout(HOLD, stop.cancelled()).await.is_err() {
                        listen::serve(answered, rules, answering).await;
                    }
                }));
                Ok(kept)
            };
        let packages = shared(packages, &config.tls.packages, "packages")?;
        let api = api.map(|api| shared(api, &config.tls.api, "api")).transpose()?;
        Ok(Starting { sockets: Sockets { packages, api, metrics, redirect }, stop, tasks })
    }

    /// Answers no more, and hands the sockets over: who connects in between waits.
    pub(super) async fn end(self) -> Sockets {
        self.stop.cancel();
        for task in self.tasks {
            let _ = tokio::time::timeout(FAREWELL, task).await;
        }
        self.sockets
    }
}

/// TLS with the certificates of these files; none where there are none.
fn secured(config: &Config, files: &[CertificateFiles], host: &str) -> anyhow::Result<Option<Arc<Tls>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let tls = Tls::new(None).context("failed to prepare TLS")?;
    tls.serve(certificates::load(config, files, host)?);
    Ok(Some(Arc::new(tls)))
}

/// The same socket as two listeners: one stays open when the other ends.
fn twice(listener: TcpListener) -> std::io::Result<(TcpListener, TcpListener)> {
    let one = listener.into_std()?;
    let other = one.try_clone()?;
    Ok((TcpListener::from_std(one)?, TcpListener::from_std(other)?))
}

fn rules(config: &Config, stop: &CancellationToken) -> Rules {
    Rules {
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

/// Of `/readyz` too, which names what is compiled. The connection ends, so that the next request comes to the server itself.
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
