//! What both hosts share: the settings, the store, the plugins and whether they serve.

pub mod body_budget;
pub mod login_links;
pub mod mail;
pub mod metrics;
pub mod public_url;
pub mod readiness;
pub mod sso;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use packhouse_runtime::Runtime;
use packhouse_store::Store;
use tokio_util::sync::CancellationToken;

use crate::body_budget::BodyBudget;
use crate::mail::Mail;
use crate::readiness::Readiness;
use crate::sso::Providers;
use packhouse_config::Config;
use packhouse_identity::{Bearers, Passwords, Sealer, SignIns};
use packhouse_upstream::Upstreams;
use packhouse_wire::descriptors::Shares;
use packhouse_wire::listen::{Rules, Windows};
use packhouse_wire::request_meters::RequestMeters;

/// The state of the program; handed out as an `Arc`.
pub struct App {
    /// All settings.
    pub config: Config,
    /// Records, blobs and accounts.
    pub store: Store,
    /// The loaded plugins.
    pub runtime: Runtime,
    /// Seals secrets that must be read again.
    pub sealer: Sealer,
    /// Sends invitations and password resets.
    pub mail: Mail,
    /// Providers by which members sign in.
    pub providers: Providers,
    /// Proxies' upstreams.
    pub upstreams: Arc<Upstreams>,
    /// Makes and checks the hashes of passwords.
    pub passwords: Passwords,
    /// Attempts to sign in with a password, on both hosts.
    pub sign_ins: Arc<SignIns>,
    /// Signs and checks what token services give out.
    pub bearers: Bearers,
    /// Bodies of API calls that are being read.
    pub bodies: Arc<BodyBudget>,
    /// What of the process's descriptors each part may have.
    pub shares: Shares,
    /// Cancelled when the server is about to stop: it serves on, and says that it is not ready.
    pub draining: CancellationToken,
    /// Cancelled when the server is to stop.
    pub stop: CancellationToken,
    /// Where the two hosts listen, once they do.
    pub listening: OnceLock<Listening>,
    /// What is counted of requests.
    pub meters: Meters,
    /// What works at present.
    pub readiness: Readiness,
    serving: AtomicBool,
}

/// What is counted of requests, by host.
pub struct Meters {
    /// Of the repository host.
    pub packages: Arc<RequestMeters>,
    /// Of the API.
    pub api: Arc<RequestMeters>,
}

impl Meters {
    fn new(runtime: &Runtime) -> Meters {
        let formats = runtime.plugins().iter().map(|plugin| plugin.description().format.clone());
        Meters {
            packages: Arc::new(RequestMeters::new("packages", formats)),
            api: Arc::new(RequestMeters::new("api", None)),
        }
    }
}

/// The bound addresses.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Of the repository host.
    pub packages: SocketAddr,
    /// Of the API.
    pub api: SocketAddr,
}

impl App {
    /// The state before anything listens.
    pub fn new(config: Config, store: Store, runtime: Runtime, mail: Mail) -> App {
        let passwords = Passwords::new();
        App {
            mail,
            sealer: Sealer::new(config.sealing_key.clone(), &config.data),
            providers: Providers::new(&config.upstream_allow_networks),
            upstreams: Upstreams::new(store.clone(), &config),
            bodies: BodyBudget::new(&config.limits),
            shares: Shares::of_process(config.limits.connections),
            draining: CancellationToken::new(),
            meters: Meters::new(&runtime),
            readiness: Readiness::new(config.readiness_interval),
            config,
            store,
            runtime,
            sign_ins: SignIns::new(passwords.clone()),
            passwords,
            bearers: Bearers::default(),
            stop: CancellationToken::new(),
            listening: OnceLock::new(),
            serving: AtomicBool::new(false),
        }
    }

    /// What holds on a listener of this program.
    pub fn rules(&self, windows: Windows) -> Rules {
        Rules {
            limits: self.config.limits,
            connections: self.shares.connections,
            requests: None,
            trusted: self.config.trusted_proxies.as_slice().into(),
            windows,
            draining: self.draining.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Whether the format's repositories are served at present: as the organization switched it, else as the settings say.
    pub fn enabled(&self, format: &str, switched: Option<bool>) -> bool {
        switched.unwrap_or_else(|| !self.config.disabled.iter().any(|name| name == format))
    }

    /// Both hosts serve from now on, or no longer.
    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Release);
    }

    /// Whether both hosts serve, and the server is not about to stop.
    pub fn serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) && !self.draining.is_cancelled()
    }

    /// The public address of the API, without a slash at its end: as configured, else where it listens.
    pub fn api_url(&self) -> String {
        match (&self.config.api_url, self.listening.get()) {
            (Some(url), _) => public_url::text(url),
            (None, Some(listening)) => format!("http://{}", listening.api),
            (None, None) => format!("http://{}", self.config.api_listen),
        }
    }

    /// The public address of the repository host, without a slash at its end: as configured, else where it listens.
    pub fn base_url(&self) -> String {
        match (&self.config.base_url, self.listening.get()) {
            (Some(url), _) => public_url::text(url),
            (None, Some(listening)) => format!("http://{}", listening.packages),
            (None, None) => format!("http://{}", self.config.packages_listen),
        }
    }
}
