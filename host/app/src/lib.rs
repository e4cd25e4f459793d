//! State that both hosts share: settings, store, plugins and readiness.

pub mod attestations;
pub mod body_budget;
pub mod certificates;
pub mod jobs;
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

// `boxed` compiles the body of an `async fn` in this crate, and not again in each crate that awaits
// it.
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
use packhouse_wire::listen::{Holds, ListenerRules, Windows};
use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::send_budget::SendBudget;
use packhouse_wire::spill::Spill;
use packhouse_wire::tls::Tls;

/// State of the program. All parts of the program share it as an `Arc`.
pub struct App {
    /// All settings, as read when the server started.
    pub config: Config,
    /// Current values of those settings that may change while the server runs.
    pub live: LiveSettings,
    /// Records, blobs and accounts.
    pub store: Store,
    pub runtime: Runtime,
    /// Components that this server runs for the formats, as it last read them from the database.
    pub plugins: plugins::Followed,
    /// Trust settings for the verification of signed statements about packages.
    pub trust: attestations::Trusted,
    /// Loaded policy components, and the last failures of rules.
    pub policies: policies::Policies,
    /// Encrypts secrets that the server must be able to read again.
    pub sealer: Sealer,
    /// Sends invitations and password resets.
    pub mail: Mail,
    /// Identity providers for single sign-on.
    pub providers: Providers,
    pub issuers: publishers::Issuers,
    /// HTTP clients for the servers that receive webhooks.
    pub receivers: webhooks::Receivers,
    /// Known vulnerabilities and malware in packages.
    pub advisories: Arc<Advisories>,
    pub upstreams: Arc<Upstreams>,
    /// Computes and checks password hashes.
    pub passwords: Passwords,
    /// Checks the passwords of sign-ins on both hosts, and limits the attempts.
    pub sign_ins: Arc<SignIns>,
    /// Signs and checks the tokens of token services.
    pub bearers: Bearers,
    /// Memory for bodies of API calls that the server is reading.
    pub bodies: Arc<BodyBudget>,
    /// Division of the process's file descriptors among their users.
    pub shares: Shares,
    /// Memory on both hosts for responses that wait for their clients.
    pub send_budget: Arc<SendBudget>,
    /// Files for waiting responses that do not fit in memory.
    pub spill: Spill,
    /// Cancelled when the server is about to stop. From then on it still serves, but reports that
    /// it is not ready.
    pub draining: CancellationToken,
    /// Cancelled when the server must stop.
    pub stop: CancellationToken,
    /// Addresses of the two hosts' listeners; empty until they listen.
    pub listening: OnceLock<Listening>,
    /// Responses to ACME challenges.
    pub proofs: Arc<proofs::Proofs>,
    pub certificates: CertificateProblems,
    pub reloading: OnceLock<Reloading>,
    /// TLS of the two hosts; empty until it is set up.
    pub tls: OnceLock<Secured>,
    pub meters: Meters,
    /// Results of the readiness checks.
    pub readiness: Readiness,
    pub jobs: jobs::Jobs,
    serving: AtomicBool,
    first_organization: OnceLock<OrganizationId>,
}

/// Request meters of each host.
pub struct Meters {
    pub packages: Arc<RequestMeters>,
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

#[derive(Clone, Copy, Debug)]
pub struct Listening {
    pub packages: SocketAddr,
    pub api: SocketAddr,
}

/// TLS of the two hosts; `None` for a host that serves plain HTTP.
#[derive(Clone, Debug, Default)]
pub struct Secured {
    pub packages: Option<Arc<Tls>>,
    pub api: Option<Arc<Tls>>,
}

impl App {
    /// Creates the state, before any listener starts.
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
            jobs: jobs::Jobs::default(),
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

    /// Returns the rules for a plain HTTP listener of this server.
    pub fn rules(&self, windows: Windows) -> ListenerRules {
        let hsts = self.config.tls.hsts_s.map(|seconds| format!("max-age={seconds}"));
        ListenerRules {
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

    pub fn secured(&self) -> Secured {
        self.tls.get().cloned().unwrap_or_default()
    }

    /// Returns `https` if the repository host uses TLS, else `http`.
    pub fn packages_scheme(&self) -> &'static str {
        scheme(self.config.tls.serves_packages())
    }

    /// Returns `https` if the API uses TLS, else `http`.
    pub fn api_scheme(&self) -> &'static str {
        scheme(self.config.tls.serves_api())
    }

    /// Reports whether the server serves repositories of this format. If the organization switched
    /// the format on or off, this takes precedence over the settings.
    pub fn enabled(&self, format: &str, switched: Option<bool>) -> bool {
        switched.unwrap_or_else(|| !self.config.disabled.iter().any(|name| name == format))
    }

    /// Returns the oldest organization, to which the server's operators belong. Returns `None` for
    /// an empty database.
    #[boxed]
    pub async fn first_organization(&self) -> Result<Option<OrganizationId>, StoreError> {
        if let Some(first) = self.first_organization.get() {
            return Ok(Some(*first));
        }
        let first = self.store.first_organization().await?;
        // Organizations are never deleted, so the oldest one never changes.
        Ok(first.inspect(|first| {
            let _ = self.first_organization.set(*first);
        }))
    }

    /// Records whether both hosts serve requests.
    pub fn set_serving(&self, serving: bool) {
        self.serving.store(serving, Ordering::Release);
    }

    /// Reports whether both hosts serve all plugins and the server is not about to stop.
    pub fn serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) && !self.draining.is_cancelled() && self.runtime.is_whole()
    }

    /// Returns the readiness report, which includes the components that still have to be compiled.
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
