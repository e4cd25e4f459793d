//! `packhouse serve`: everything opened in order, both hosts served, everything stopped again.
//!
//! What is wrong with settings or store is an error at the start and no half a server. Until the store is open the sockets are answered on
//! by [`starting`] alone. Plugins that were compiled before serve from then on, and the others each once it is compiled: only then is
//! the server said to be ready.

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

pub(crate) use acme::Shelf;
pub(crate) use addresses::check_api_path;
pub(crate) use private::{as_the_author_has_it, holds_others, make_files_private};
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
use packhouse_app::mail::Mail;
use packhouse_app::metrics;
use packhouse_app::plugins::signatures::TrustedKeys;
use packhouse_app::plugins::{add_up_trials, compile_rest, follow_changes};
use packhouse_app::reload::Reloading;
use packhouse_app::{App, Listening};
use packhouse_config::{Config, Network};
use packhouse_packages as packages;
use packhouse_wire::descriptors;
use packhouse_wire::listen::{self, Rules, Windows};
use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::trace;
use stop::Signals;

/// Connections to the listener of the metrics.
const METRICS_CONNECTIONS: usize = 16;

use self::starting::Starting;
use self::watch::Watch;
use crate::unbound::unbound;

/// How long the storage of blobs may take at the start to say whether it may be used.
const ADMISSION: Duration = Duration::from_secs(5);

/// Makes the data folder, and sees that no server uses it as long as the answer lives: for a command that fills it.
pub(crate) fn alone(config: &Config) -> anyhow::Result<Option<std::fs::File>> {
    private::data_folder(config)?;
    lock::take(config)
}

/// Serves until SIGTERM or SIGINT; at SIGHUP the settings are read again. An error is one that kept it from starting.
pub(crate) async fn serve(config: Config, reloading: Reloading) -> anyhow::Result<()> {
    check_api_path(&config)?;
    metrics::install()?;
    private::data_folder(&config)?;
    descriptors::raise();
    let _lock = lock::take(&config)?;
    // Beside all that follows until the plugins are needed.
    let examining = tokio::spawn(Runtime::examine_kept(config.runtime.clone()));
    let mail = Mail::new(&config)?;
    TrustedKeys::read(&config.trusted_keys).with_context(|| config.sources.label("plugins.trusted_keys"))?;
    let trust = attestations::read(&config)?;
    // Before the first owner is made: a password that is printed once is not printed for a server that cannot listen.
    let starting = Starting::answer(&config, Sockets::bind(&config).await?)?;
    let store = Store::open(config.store.clone()).await.with_context(|| {
        let [database, blobs] = ["database_url", "blobs"].map(|name| config.sources.label(name));
        format!("failed to open the store; {database}, {blobs}")
    })?;
    admitted(&store).await?;
    let runtime = examining
        .await
        .context("failed to look through the plugins")?
        .and_then(|plugins| plugins.with(&store))
        .with_context(|| format!("{}: failed to load the plugins", config.sources.label("plugins.dir")))?;
    let app = Arc::new(App::new(config, store, runtime, mail));
    app.trust.set(trust);
    app.begin_plugins().await.context("failed to read what formats run")?;
    app.follow_advisories().await.context("failed to read whether there are advisories")?;
    // Set once: this is the only place.
    let _ = app.reloading.set(reloading);
    certificates::prepare(&app)?;
    metrics::register(&app, [Arc::clone(&app.meters.packages), Arc::clone(&app.meters.api)]);
    sealing::check(&app).await?;
    first::prepare(&app).await?;
    let mut signals = Signals::catch()?;
    let mut watch = Watch::new(&app);
    watch.look().await;
    addresses::examine(&app)?;
    // From the first connection on.
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

/// Reads the settings again, as somebody asked for by a signal. What is wrong with them is in the log, and nothing has changed then.
fn reload(app: &App) {
    let is_ready = app.runtime.is_whole();
    if is_ready {
        supervisor::reloading();
    }
    let status = match app.reload() {
        Ok(_) => "serving".to_owned(),
        Err(error) => {
            tracing::error!(%error, "the settings were not read again; those from before hold");
            format!("serving; the settings were not read again: {error}").replace('\n', " ")
        }
    };
    // Whoever is not ready yet says so once, in its time.
    if is_ready {
        supervisor::ready(&status);
    }
}

/// Credentials that S3 refuses end the start. Storage that does not answer does not: what lies in the database is served meanwhile.
async fn admitted(store: &Store) -> anyhow::Result<()> {
    match tokio::time::timeout(ADMISSION, store.admits_blobs()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if !error.is_unavailable() => Err(error).context("failed to use the storage of blobs"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the storage of blobs does not work; the server starts without it");
            Ok(())
        }
        Err(_) => {
            tracing::warn!("the storage of blobs does not answer; the server starts without it");
            Ok(())
        }
    }
}

/// The bound sockets.
struct Sockets {
    packages: TcpListener,
    /// None where one listener serves both hosts.
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
    TcpListener::bind(address).await.map_err(|error| anyhow!(unbound(config, setting, &error)))
}

/// What runs until the stop.
struct Hosts {
    listeners: Vec<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
}

impl Hosts {
    /// Waits for the listeners, which end in time, and so long at most for what is done now and then.
    async fn finish(self, at_most: Duration) {
        let end = Instant::now() + at_most;
        for task in self.listeners {
            if let Err(error) = task.await {
                tracing::error!(%error, "a host ended badly");
            }
        }
        for task in self.background {
            match timeout_at(end, task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a task ended badly"),
                Err(_) => tracing::warn!("a task in the background has not ended in time"),
            }
        }
    }
}

fn start(app: &Arc<App>, sockets: Sockets, watch: Watch) -> anyhow::Result<Hosts> {
    let packages = sockets.packages.local_addr()?;
    let api = sockets.api.as_ref().map_or(Ok(packages), TcpListener::local_addr)?;
    let listening = Listening { packages, api };
    // Set once: this is the only place.
    let _ = app.listening.set(listening);
    tracing::info!(packages = %listening.packages, api = %listening.api, "serving");
    tracing::info!(shares = ?app.shares, "what is served at one time");
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
        let rules =
            Rules { connections: rules.connections.min(METRICS_CONNECTIONS), proxy_protocol: false, ..rules };
        listeners.push(tokio::spawn(serve_router(api::metrics_router(), listener, rules, meters())));
    }
    let background = vec![
        tokio::spawn(background::collect(Arc::clone(app))),
        tokio::spawn(background::forget_audit(Arc::clone(app))),
        tokio::spawn(background::forget_activity(Arc::clone(app))),
        tokio::spawn(background::remove_deleted(Arc::clone(app))),
        tokio::spawn(background::empty_trash(Arc::clone(app))),
        tokio::spawn(packhouse_app::recordings::run(Arc::clone(app))),
        tokio::spawn(attestations::judge(Arc::clone(app))),
        tokio::spawn(packhouse_app::webhooks::deliver(Arc::clone(app))),
        tokio::spawn(packhouse_app::webhooks::tidy(Arc::clone(app))),
        tokio::spawn(once_whole(Arc::clone(app), api::operations::upkeep::resume(Arc::clone(app)))),
        tokio::spawn(once_whole(Arc::clone(app), api::operations::retention::every_hour(Arc::clone(app)))),
        tokio::spawn(follow_changes(Arc::clone(app))),
        tokio::spawn(compile_rest(Arc::clone(app))),
        tokio::spawn(packhouse_app::policies::load(Arc::clone(app))),
        tokio::spawn(add_up_trials(Arc::clone(app))),
        tokio::spawn(background::tend_metrics(app.stop.clone())),
        tokio::spawn(certificates::watch(Arc::clone(app))),
        tokio::spawn(acme::run(Arc::clone(app))),
        tokio::spawn(watch.run()),
    ];
    Ok(Hosts { listeners, background })
}

/// Does what needs every plugin, once all are there.
async fn once_whole(app: Arc<App>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = app.plugins.whole() => work.await,
        () = app.stop.cancelled() => {}
    }
}

async fn serve_router(router: Router, listener: TcpListener, rules: Rules, meters: Arc<RequestMeters>) {
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

/// A router's answer, counted and traced.
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
