//! `packhouse serve`: everything opened in order, both hosts served, everything stopped again.
//!
//! Settings, store and plugins come before any socket, so that what is wrong with them is an error at the start and no
//! half a server.

mod background;
mod first;
mod lock;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use packhouse_runtime::Runtime;
use packhouse_store::Store;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::api::{self, Peer};
use crate::app::{App, Listening};
use crate::config::{Config, Limits};
use crate::mail::Mail;
use crate::{listen, metrics, packages};

/// Serves until SIGTERM or SIGINT. An error is one that kept it from starting.
pub(crate) async fn serve(config: Config) -> anyhow::Result<()> {
    metrics::install()?;
    let _lock = lock::take(&config)?;
    let mail = Mail::new(&config)?;
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    let runtime =
        Runtime::load(config.runtime.clone(), store.clone()).await.context("failed to load the plugins")?;
    let app = Arc::new(App::new(config, store, runtime, mail));
    first::prepare(&app).await?;
    let sockets = Sockets::bind(&app.config).await?;
    let mut signals = Signals::catch()?;
    let hosts = start(&app, sockets)?;
    app.set_serving(true);
    signals.wait().await;
    tracing::info!("stopping");
    app.set_serving(false);
    app.stop.cancel();
    hosts.finish().await;
    app.store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// The bound sockets.
struct Sockets {
    packages: TcpListener,
    api: TcpListener,
    metrics: Option<TcpListener>,
}

impl Sockets {
    async fn bind(config: &Config) -> anyhow::Result<Sockets> {
        Ok(Sockets {
            packages: bind(&config.packages_listen, "packages_listen").await?,
            api: bind(&config.api_listen, "api_listen").await?,
            metrics: match &config.metrics_listen {
                Some(address) => Some(bind(address, "metrics_listen").await?),
                None => None,
            },
        })
    }
}

async fn bind(address: &str, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address} ({setting})"))
}

/// SIGTERM and SIGINT, caught from before anything listens.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch() -> anyhow::Result<Signals> {
        let catch = |kind| signal(kind).context("failed to catch signals");
        Ok(Signals { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What runs until the stop.
struct Hosts {
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Hosts {
    async fn finish(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a host ended badly");
            }
        }
    }
}

fn start(app: &Arc<App>, sockets: Sockets) -> anyhow::Result<Hosts> {
    let listening = Listening { packages: sockets.packages.local_addr()?, api: sockets.api.local_addr()? };
    // Set once: this is the only place.
    let _ = app.listening.set(listening);
    tracing::info!(packages = %listening.packages, api = %listening.api, "serving");
    let limits = app.config.limits;
    let stop = &app.stop;
    let mut tasks = vec![
        tokio::spawn(packages::run(Arc::clone(app), sockets.packages)),
        tokio::spawn(serve_router(api::router(Arc::clone(app))?, sockets.api, limits, stop.clone())),
        tokio::spawn(background::collect(Arc::clone(app))),
        tokio::spawn(background::forget_audit(Arc::clone(app))),
        tokio::spawn(background::tend_metrics(stop.clone())),
    ];
    if let Some(listener) = sockets.metrics {
        tasks.push(tokio::spawn(serve_router(api::metrics_router(), listener, limits, stop.clone())));
    }
    Ok(Hosts { tasks })
}

async fn serve_router(router: Router, listener: TcpListener, limits: Limits, stop: CancellationToken) {
    let make = move |peer: SocketAddr| {
        let router = router.clone();
        service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(Peer(peer.ip()));
            router.clone().oneshot(request)
        })
    };
    listen::serve(listener, limits, stop, make).await;
}
