//! What both hosts share: the settings, the store, the plugins and whether they serve.

pub mod attestations;
pub mod body_budget;
pub mod certificates;
mod jwt;
pub mod links;
pub mod live;
pub mod login_links;
pub mod mail;
pub mod metrics;
pub mod plugins;
pub mod policies;
pub mod proofs;
pub mod public_url;
pub mod publishers;
pub mod rate_limits;
pub mod readiness;
pub mod recordings;
pub mod reload;
pub mod served;
pub mod sso;
mod token_bucket;
pub mod webhooks;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use packhouse_advisories::Advisories;
use packhouse_runtime::{Runtime, compiling};
use packhouse_store::{OrganizationId, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::body_budget::BodyBudget;
use crate::certificates::CertificateProblems;
use crate::live::LiveSettings;
use crate::mail::Mail;
use crate::readiness::{PLUGIN, Problem, Readiness, Report};
use crate::reload::Reloading;
use crate::sso::Providers;
use packhouse_config::Config;
use packhouse_identity::{Bearers, Passwords, Sealer, SignIns};
use packhouse_upstream::Upstreams;
use packhouse_wire::descriptors::Shares;
use packhouse_wire::listen::{Holds, Rules, Windows};
use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::send_budget::SendBudget;
use packhouse_wire::spill::Spill;
use packhouse_wire::tls::Tls;

/// The state of the program; handed out as an `Arc`.
pub struct App {
    /// All settings, as they were at the start.
    pub config: Config,
    /// Those of them that may change while the server runs, as they are at present.
    pub live: LiveSettings,
    /// Records, blobs and accounts.
    pub store: Store,
    /// The loaded plugins.
    pub runtime: Runtime,
    /// What this server has followed of what formats run.
    pub plugins: plugins::Followed,
    /// By what signed statements about packages are judged.
    pub trust: attestations::Trusted,
    /// What is kept of policies.
    pub policies: policies::Policies,
    /// Seals secrets that must be read again.
    pub sealer: Sealer,
    /// Sends invitations and password resets.
    pub mail: Mail,
    /// Providers by which members sign in.
    pub providers: Providers,
    /// Issuers of ID tokens.
    pub issuers: publishers::Issuers,
    /// Where webhooks listen.
    pub receivers: webhooks::Receivers,
    /// What is known to be wrong with packages.
    pub advisories: Arc<Advisories>,
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
    /// Memory of answers that wait for their clients, on both hosts.
    pub send_budget: Arc<SendBudget>,
    /// Where answers wait for which memory has no room.
    pub spill: Spill,
    /// Cancelled when the server is about to stop: it serves on, and says that it is not ready.
    pub draining: CancellationToken,
    /// Cancelled when the server is to stop.
    pub stop: CancellationToken,
    /// Where the two hosts listen, once they do.
    pub listening: OnceLock<Listening>,
    /// Answers to authorities that want names proven.
    pub proofs: Arc<proofs::Proofs>,
    /// What is amiss with certificates.
    pub certificates: CertificateProblems,
    /// How the settings are read again.
    pub reloading: OnceLock<Reloading>,
    /// TLS of the two hosts, once it is prepared.
    pub tls: OnceLock<Secured>,
    /// What is counted of requests.
    pub meters: Meters,
    /// What works at present.
    pub readiness: Readiness,
    serving: AtomicBool,
    first_organization: OnceLock<OrganizationId>,
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
        let current = runtime.current();
        let formats = current.plugins().iter().map(|plugin| plugin.description().format.clone());
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

/// TLS of the two hosts; none where a host speaks plainly.
#[derive(Clone, Debug, Default)]
pub struct Secured {
    /// Of the repository host.
    pub packages: Option<Arc<Tls>>,
    /// Of the API.
    pub api: Option<Arc<Tls>>,
}

impl App {
    /// The state before anything listens.
    pub fn new(config: Config, store: Store, runtime: Runtime, mail: Mail) -> App {
        let passwords = Passwords::new();
        let advisories = Advisories::new(store.clone(), config.advisories.block_malware);
        App {
            mail,
            trust: attestations::Trusted::default(),
            sealer: Sealer::new(config.sealing_key.clone(), &config.data),
            providers: Providers::new(&config.upstream_allow_networks),
            issuers: publishers::Issuers::default(),
            receivers: webhooks::Receivers::new(&config.upstream_allow_networks),
            live: LiveSettings::new(&config),
            proofs: Arc::new(proofs::Proofs::new(store.clone())),
            upstreams: Upstreams::new(store.clone(), &config, Arc::clone(&advisories)),
            advisories,
            bodies: BodyBudget::new(&config.limits),
            shares: Shares::of_process(config.limits.connections),
            send_budget: Arc::default(),
            spill: Spill::in_folder(&config.data),
            draining: CancellationToken::new(),
            meters: Meters::new(&runtime),
            plugins: plugins::Followed::default(),
            policies: policies::Policies::default(),
            readiness: Readiness::new(config.readiness_interval),
            config,
            store,
            runtime,
            sign_ins: SignIns::new(passwords.clone()),
            passwords,
            bearers: Bearers::default(),
            stop: CancellationToken::new(),
            listening: OnceLock::new(),
            certificates: CertificateProblems::default(),
            reloading: OnceLock::new(),
            tls: OnceLock::new(),
            serving: AtomicBool::new(false),
            first_organization: OnceLock::new(),
        }
    }

    /// What holds on a listener of this program that speaks plainly.
    pub fn rules(&self, windows: Windows) -> Rules {
        let hsts = self.config.tls.hsts_s.map(|seconds| format!("max-age={seconds}"));
        Rules {
            limits: self.live.limits.clone(),
            connections: self.shares.connections,
            requests: None,
            trusted: self.live.trusted_proxies.clone(),
            proxy_protocol: self.config.proxy_protocol,
            tls: None,
            hsts: hsts.and_then(|text| text.parse().ok()),
            windows,
            budget: Arc::clone(&self.send_budget),
            holds: Holds::ByLength,
            is_call: None,
            draining: self.draining.clone(),
            stop: self.stop.clone(),
        }
    }

    /// TLS of both hosts.
    pub fn secured(&self) -> Secured {
        self.tls.get().cloned().unwrap_or_default()
    }

    /// `https` where the repository host speaks TLS, else `http`.
    pub fn packages_scheme(&self) -> &'static str {
        scheme(self.config.tls.serves_packages())
    }

    /// The same of the API.
    pub fn api_scheme(&self) -> &'static str {
        scheme(self.config.tls.serves_api())
    }

    /// Whether the format's repositories are served at present: as the organization switched it, else as the settings say.
    pub fn enabled(&self, format: &str, switched: Option<bool>) -> bool {
        switched.unwrap_or_else(|| !self.config.disabled.iter().any(|name| name == format))
    }

    /// The organization that the server's operators belong to: the first that was made. None in an empty database.
    #[boxed]
    pub async fn first_organization(&self) -> Result<Option<OrganizationId>, StoreError> {
        if let Some(first) = self.first_organization.get() {
            return Ok(Some(*first));
        }
        let first = self.store.first_organization().await?;
        // None is ever taken away, so the first stays the first.
        Ok(first.inspect(|first| {
            let _ = self.first_organization.set(*first);
        }))
    }

    /// Both hosts serve from now on, or no longer.
    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Release);
    }

    /// Whether both hosts serve all that there is to serve, and the server is not about to stop.
    pub fn serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) && !self.draining.is_cancelled() && self.runtime.is_whole()
    }

    /// What is known of this server's readiness, with the components that it has still to compile.
    pub fn report(&self) -> Report {
        let mut report = self.readiness.report(self.serving());
        let current = self.runtime.current();
        if !current.awaited().is_empty() {
            let now = compiling();
            report.degraded.extend(current.awaited().iter().map(|awaited| {
                let name = &awaited.name;
                let is_under_way = now.iter().any(|one| one.name == *name);
                let does = if is_under_way { "is being compiled" } else { "waits to be compiled" };
                Problem { what: PLUGIN, since: awaited.since, detail: format!("The plugin {name} {does}.") }
            }));
        }
        report
    }
}

fn scheme(secured: bool) -> &'static str {
    if secured { "https" } else { "http" }
}
