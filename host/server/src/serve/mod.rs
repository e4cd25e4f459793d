//! `packhouse serve`: opens everything in order, serves both hosts and stops everything again.
//!
//! An error in settings or store ends the start; the server never starts partially. Until the store
//! is open, [`starting`] answers on the sockets. Plugins with compiled code serve immediately, and
//! other plugins as soon as they are compiled. The server reports ready only when all are compiled.

mod acme;
mod addresses;
mod background;
pub(crate) mod certificates;
mod first;
mod greeting;
mod lock;
mod one_listener;
mod private;
mod redirect;
mod sealing;
mod starting;
mod stop;
mod supervisor;
mod watch;

pub(crate) use acme::AcmeStore;
pub(crate) use addresses::check_api_path;
pub(crate) use private::{has_foreign_files, make_files_private, restore_umask};
pub(crate) use stop::end_with_stdin;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use axum::Router;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use packhouse_runtime::Runtime;
use packhouse_store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt;
use tracing::Instrument as _;

use packhouse_api::{self as api, Peer};
use packhouse_app::attestations;
use packhouse_app::jobs;
use packhouse_app::mail::Mail;
use packhouse_app::metrics;
use packhouse_app::plugins::signatures::TrustedKeys;
use packhouse_app::plugins::{compile_rest, follow_changes};
use packhouse_app::reload::Reloading;
use packhouse_app::{App, Listening};
use packhouse_config::{Config, Network};
use packhouse_packages as packages;
use packhouse_wire::descriptors;
use packhouse_wire::listen::{self, ListenerRules, Windows};
use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::trace;
use stop::Signals;

/// Maximum number of connections to the metrics listener.
const METRICS_CONNECTIONS: usize = 16;

use self::starting::Starting;
use self::watch::Watch;
use crate::bind_error::bind_error;

/// How long the start waits for the blob storage to confirm access.
const ADMISSION: Duration = Duration::from_secs(5);

/// Creates and locks the data folder, so that no server uses it while the returned lock exists. The
/// restore command calls this function too.
pub(crate) fn lock_data_folder(config: &Config) -> anyhow::Result<Option<std::fs::File>> {
    private::data_folder(config)?;
    lock::take(config)
}

/// Serves until SIGTERM or SIGINT, and reloads the settings on SIGHUP. Returns an error if the
/// server could not start.
pub(crate) async fn serve(config: Config, reloading: Reloading) -> anyhow::Result<()> {
    check_api_path(&config)?;
    metrics::install()?;
    private::data_folder(&config)?;
    descriptors::raise();
    let _lock = lock::take(&config)?;
    // Runs in parallel with the following steps until the plugins are needed.
    let examining = tokio::spawn(Runtime::examine_cached(config.runtime.clone()));
    let mail = Mail::new(&config)?;
    TrustedKeys::read(&config.trusted_keys).with_context(|| config.sources.label("plugins.trusted_keys"))?;
    let trust = attestations::read(&config)?;
    // Before the first owner is created: a server that cannot listen must not print the one-time
    // password.
    let starting = Starting::answer(&config, Sockets::bind(&config).await?)?;
    let store = Store::open(config.store.clone()).await.with_context(|| {
        let [database, blobs] = ["database_url", "blobs"].map(|name| config.sources.label(name));
        format!("failed to open the store; {database}, {blobs}")
    })?;
    admitted(&store).await?;
    let runtime = examining
        .await
        .context("inspecting the plugins failed")?
        .and_then(|plugins| plugins.with(&store))
        .with_context(|| format!("{}: failed to load the plugins", config.sources.label("plugins.dir")))?;
    let app = Arc::new(App::new(config, store, runtime, mail));
    app.trust.set(trust);
    app.begin_plugins().await.context("failed to read the active components of the formats")?;
    app.follow_advisories().await.context("failed to read the state of advisories")?;
    // Cannot fail: this is the only place that sets it.
    let _ = app.reloading.set(reloading);
    certificates::prepare(&app)?;
    metrics::register(&app, [Arc::clone(&app.meters.packages), Arc::clone(&app.meters.api)]);
    sealing::check(&app).await?;
    first::prepare(&app).await?;
    let mut signals = Signals::catch()?;
    let mut watch = Watch::new(&app);
    watch.check_all().await;
    addresses::examine(&app)?;
    // Before the first connection is accepted.
    app.set_serving(true);
    let hosts = start(&app, starting.end().await, watch)?;
    tokio::spawn(supervisor::watchdog());
    let ready = async {
        app.plugins.whole().await;
        tracing::info!("ready");
        supervisor::ready("serving");
        greeting::greet(&app);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = ready => {}
        () = signals.wait(|| reload(&app)) => {}
    }
    supervisor::stopping();
    stop::stop(&app, hosts, &mut signals).await;
    Ok(())
}

/// Reloads the settings after a signal. If they are invalid, logs the error and keeps the current
/// ones.
fn reload(app: &App) {
    let is_ready = app.runtime.is_whole();
    if is_ready {
        supervisor::reloading();
    }
    let status = match app.reload() {
        Ok(_) => "serving".to_owned(),
        Err(error) => {
            tracing::error!(%error, "reloading the settings failed; the previous settings stay in effect");
            format!("serving; reloading the settings failed: {error}").replace('\n', " ")
        }
    };
    // A server that is not ready yet reports "ready" later itself, and only once.
    if is_ready {
        supervisor::ready(&status);
    }
}

/// Checks access to the blob storage. Rejected S3 credentials end the start. Unavailable storage
/// does not: the server can still answer from the database.
async fn admitted(store: &Store) -> anyhow::Result<()> {
    match tokio::time::timeout(ADMISSION, store.admits_blobs()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if !error.is_unavailable() => Err(error).context("failed to access the blob storage"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the blob storage does not work; the server starts without it");
            Ok(())
        }
        Err(_) => {
            tracing::warn!("the blob storage does not answer; the server starts without it");
            Ok(())
        }
    }
}

/// Sockets that are bound but not served yet.
struct Sockets {
    packages: TcpListener,
    /// Absent if one listener serves both hosts.
    api: Option<TcpListener>,
    metrics: Option<TcpListener>,
    redirect: Option<TcpListener>,
}

impl Sockets {
    async fn bind(config: &Config) -> anyhow::Result<Sockets> {
        Ok(Sockets {
            packages: bind(config, &config.packages_listen, "packages_listen").await?,
            api: match config.has_one_listener() {
                true => None,
                false => Some(bind(config, &config.api_listen, "api_listen").await?),
            },
            metrics: match &config.metrics_listen {
                Some(address) => Some(bind(config, address, "metrics_listen").await?),
                None => None,
            },
            redirect: match &config.tls.redirect_listen {
                Some(address) => Some(bind(config, address, "tls.redirect_listen").await?),
                None => None,
            },
        })
    }
}

async fn bind(config: &Config, address: &str, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| anyhow!(bind_error(config, setting, &error)))
}

/// Tasks that run until the stop.
struct Hosts {
    listeners: Vec<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
}

impl Hosts {
    /// Waits for the listeners, which stop by themselves in time, and at most `at_most` for
    /// background tasks.
    async fn finish(self, at_most: Duration) {
        let end = Instant::now() + at_most;
        for task in self.listeners {
            if let Err(error) = task.await {
                tracing::error!(%error, "a listener task failed");
            }
        }
        for task in self.background {
            match timeout_at(end, task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a background task failed"),
                Err(_) => tracing::warn!("a background task did not end in time"),
            }
        }
    }
}

fn start(app: &Arc<App>, sockets: Sockets, watch: Watch) -> anyhow::Result<Hosts> {
    let packages = sockets.packages.local_addr()?;
    let api = sockets.api.as_ref().map_or(Ok(packages), TcpListener::local_addr)?;
    let listening = Listening { packages, api };
    // Cannot fail: this is the only place that sets it.
    let _ = app.listening.set(listening);
    tracing::info!(packages = %listening.packages, api = %listening.api, "serving");
    tracing::info!(shares = ?app.shares, "concurrency shares");
    let rules = app.rules(Windows::CALLS);
    let meters = || Arc::clone(&app.meters.api);
    let router = api::router(Arc::clone(app), packhouse_portal::router(app))?;
    let mut listeners = match sockets.api {
        Some(listener) => {
            let of_api = rules.clone().with_tls(app.secured().api);
            vec![
                tokio::spawn(packages::run(Arc::clone(app), sockets.packages)),
                tokio::spawn(serve_router(router, listener, of_api, meters())),
            ]
        }
        None => vec![tokio::spawn(one_listener::run(Arc::clone(app), router, sockets.packages))],
    };
    if let Some(listener) = sockets.redirect {
        let meters = Arc::new(RequestMeters::new("redirect", None));
        listeners.push(tokio::spawn(serve_router(
            redirect::router(Arc::clone(app)),
            listener,
            rules.clone(),
            meters,
        )));
    }
    if let Some(listener) = sockets.metrics {
        let rules = ListenerRules {
            connections: rules.connections.min(METRICS_CONNECTIONS),
            proxy_protocol: false,
            ..rules
        };
        listeners.push(tokio::spawn(serve_router(api::metrics_router(), listener, rules, meters())));
    }
    Ok(Hosts { listeners, background: start_background(app, watch) })
}

/// Starts everything that the server does without a request: its jobs, and work that happens once.
fn start_background(app: &Arc<App>, watch: Watch) -> Vec<JoinHandle<()>> {
    let mut background = vec![
        tokio::spawn(packhouse_app::recordings::keep_finished(Arc::clone(app))),
        tokio::spawn(compile_rest(Arc::clone(app))),
        tokio::spawn(packhouse_app::policies::load(Arc::clone(app))),
    ];
    let jobs = background::jobs(app)
        .into_iter()
        .chain(packhouse_app::recordings::jobs(app))
        .chain([attestations::job(app), follow_changes(app)])
        .chain([api::operations::retention::job(app), api::operations::upkeep::job(app)])
        .chain([certificates::job(app), watch.job()])
        .chain(acme::job(app));
    background.extend(jobs.map(|job| jobs::start(app, job)));
    background.extend(packhouse_app::webhooks::start(app));
    background
}

async fn serve_router(
    router: Router,
    listener: TcpListener,
    rules: ListenerRules,
    meters: Arc<RequestMeters>,
) {
    let trusted = rules.trusted.clone();
    let make = move |peer: SocketAddr| {
        let (router, meters, trusted) = (router.clone(), Arc::clone(&meters), trusted.clone());
        service_fn(move |request: Request<Incoming>| {
            let (router, meters) = (router.clone(), Arc::clone(&meters));
            let trusted = trusted.get();
            async move { Ok(answer(router, &meters, &trusted, peer, request).await) }
        })
    };
    listen::serve(listener, rules, make).await;
}

/// Returns a router's response, and records metrics and a trace.
async fn answer(
    router: Router,
    meters: &RequestMeters,
    trusted: &[Network],
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response {
    let mut request = request.map(axum::body::Body::new);
    request.extensions_mut().insert(Peer(peer.ip()));
    let span = trace::request("api", request.method(), request.headers(), peer.ip(), trusted);
    let began = Instant::now();
    let _ticket = meters.under_way.begin(began.into_std());
    let method = request.method().clone();
    let answer = match router.oneshot(request).instrument(span).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    meters.answered(None, &method, answer.status(), began.elapsed());
    answer
}
