//! What the operator sets: from a TOML file, the environment and the command line, later ones winning, each value
//! with where it came from. Strict: a key that is not known is an error that names the nearest one.

pub mod addresses;
mod advisories;
mod attestations;
mod bound_keys;
pub mod client_network;
mod drain;
mod email;
mod key;
mod keys;
mod layers;
pub mod live;
mod mistake;
mod networks;
mod plugin_keys;
mod reload;
pub mod repository_settings;
mod secret;
mod setting;
mod show;
pub mod tls;
mod values;
mod webhooks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use packhouse_runtime::{PluginConfig, RuntimeConfig};
use packhouse_store::{BlobsConfig, DatabaseLimits, RedirectsConfig, StagingLimits, StoreConfig};
use url::Url;

pub use advisories::AdvisoryRules;
pub use attestations::AttestationTrust;
pub use email::{email, email_domain};
pub use layers::Inputs;
pub use mistake::{Mistake, Mistakes};
pub use networks::{Network, UpstreamNetwork, upstream_networks};
pub use reload::{Changed, Sources};
pub use secret::{Secret, TOKEN_PREFIX, new_password, says_token};
pub use setting::{Setting, Settings, Source};
pub use values::{SHORTEST_SEALING_KEY, bytes};
pub use webhooks::WebhookBounds;

/// All settings, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// `host:port` of the repository host's listener.
    pub packages_listen: String,
    /// `host:port` of the API's listener.
    pub api_listen: String,
    /// `host:port` of a listener for /metrics alone.
    pub metrics_listen: Option<String>,
    /// Networks of clients that may read /metrics on the API's listener.
    pub metrics_allow: Vec<Network>,
    /// Public address of the repository host.
    pub base_url: Option<Url>,
    /// Public address of the API.
    pub api_url: Option<Url>,
    /// Where records and blobs are.
    pub store: StoreConfig,
    /// The plugins and their limits.
    pub runtime: RuntimeConfig,
    /// PEM files of the keys of which one must have signed a component that is installed; none: digests alone count.
    pub trusted_keys: Vec<PathBuf>,
    /// By what signed statements about packages are judged.
    pub attestations: AttestationTrust,
    /// File of credentials of registries, as docker writes it.
    pub registry_auth: Option<PathBuf>,
    /// Formats that start switched off.
    pub disabled: Vec<String>,
    /// A level, or levels by target, as in `info,packhouse_store=debug`.
    pub log: String,
    /// Where traces of requests go, if anywhere.
    pub tracing: Option<Tracing>,
    /// Networks besides the public ones in which upstreams may be.
    pub upstream_allow_networks: Vec<UpstreamNetwork>,
    /// Bounds of requests to upstreams.
    pub upstream: UpstreamBounds,
    /// Bounds of what webhooks are told.
    pub webhooks: WebhookBounds,
    /// Whose forwarding headers count.
    pub trusted_proxies: Vec<Network>,
    /// The mail server, with user and password.
    pub smtp_url: Option<Secret>,
    /// Who mails come from.
    pub smtp_from: Option<String>,
    /// With what secrets that must be read again are sealed.
    pub sealing_key: Option<Secret>,
    /// The first owner.
    pub owner: Owner,
    /// Bounds of connections and bodies.
    pub limits: Limits,
    /// What is done with advisories.
    pub advisories: AdvisoryRules,
    /// Whether documents are sent compressed to clients that accept it.
    pub compression: bool,
    /// Bytes of the answers of plugins that are kept in memory.
    pub kept_response_bytes: u64,
    /// Time between two collections of garbage; none for no collection.
    pub gc_interval: Option<Duration>,
    /// Days for which the audit log is kept; none: for ever.
    pub audit_days: Option<u64>,
    /// Days for which it is remembered which versions each token fetched; 0: not at all.
    pub fetch_days: i64,
    /// Time between two looks at what the server stands on.
    pub readiness_interval: Duration,
    /// TLS on the listeners.
    pub tls: tls::TlsSettings,
    /// Whether connections from trusted proxies begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// Whether whatever changes packages or accounts is refused.
    pub read_only: bool,
    /// What everybody is told while nothing is served; empty while the server serves.
    pub maintenance: String,
    /// What was written where.
    pub sources: Sources,
}

/// Traces of requests, by OpenTelemetry's protocol over HTTP.
#[derive(Clone, Debug)]
pub struct Tracing {
    /// The address that spans are posted to.
    pub endpoint: Url,
    /// Which part of the traces is sent, from 0 to 1.
    pub sampling_ratio: f64,
    /// What the server is called.
    pub service_name: String,
}

/// Bounds of upstreams, as the operator sets them.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamBounds {
    /// For a connection to be made.
    pub connect: Duration,
    /// Without a byte of what was asked for.
    pub idle: Duration,
    /// Requests to one upstream at one time.
    pub concurrency: usize,
}

/// The owner whom an empty database gets.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The e-mail address.
    pub email: String,
    /// The password; none for a random one.
    pub password: Option<Secret>,
}

/// Bounds of connections and bodies, on both hosts unless the name says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in the body of an API call.
    pub api_body_bytes: u64,
    /// JSON tokens in the body of an API call.
    pub api_json_tokens: u64,
    /// Bytes in the bodies of all API calls that are read at one time.
    pub api_bodies_bytes: u64,
    /// The same of the calls from one address.
    pub api_bodies_bytes_per_address: u64,
    /// Bytes a second that the body of an API call comes in with at least.
    pub api_body_rate: u64,
    /// Time without a byte of a declared body.
    pub body_idle: Duration,
    /// Time in which a client takes no byte of an answer.
    pub send_idle: Duration,
    /// Time for which a connection is kept with nothing under way on it.
    pub idle: Duration,
    /// Time for what comes before the first request: a PROXY header and the handshake of TLS.
    pub handshake: Duration,
    /// Time for the head of a request.
    pub header: Duration,
    /// Connections at one time, on each listener.
    pub connections: usize,
    /// Of these, from one address.
    pub connections_per_address: usize,
    /// Requests a second with the credentials of one organization; 0 for any number.
    pub organization_request_rate: u32,
    /// The same with one credential, and of one address without any.
    pub credential_request_rate: u32,
    /// Time between the end of readiness and the end of listening, at a stop.
    pub drain: Duration,
    /// Time for a stop, from the end of listening.
    pub shutdown: Duration,
}

impl Limits {
    /// Of the time for a stop, that for what is in flight; the rest is for closing the store.
    pub fn in_flight(&self) -> Duration {
        self.shutdown.saturating_sub((self.shutdown / 4).min(MOST_FOR_CLOSING))
    }

    /// Of the time for a stop, the end: what has not been closed by then is left.
    pub fn whole_stop(&self) -> Duration {
        self.shutdown.max(LEAST_FOR_STOPPING)
    }
}

/// Time that is set apart for closing the store, where there is so much.
const MOST_FOR_CLOSING: Duration = Duration::from_secs(2);
/// Time that a stop has even where the setting says less: the store is closed when it can be.
const LEAST_FOR_STOPPING: Duration = Duration::from_millis(250);

impl Config {
    /// Reads and checks the settings. `program` is the running program's file, beside which the plugins are looked
    /// for. The second value holds warnings for the log. The error is [`Mistakes`]: every one that there is.
    pub fn load(inputs: &Inputs, program: &Path) -> anyhow::Result<(Config, Vec<String>)> {
        let layers::Laid { mut settings, of_others, mut mistakes } = layers::lay(inputs);
        let config = loop {
            match Config::from_settings(&settings, program) {
                Ok(config) => break Some(config),
                Err(mistake) => {
                    // The next one shows once this one is out of the way.
                    let again = mistake.key.as_ref().is_some_and(|key| layers::forget(&mut settings, key));
                    mistakes.push(mistake);
                    if !again {
                        break None;
                    }
                }
            }
        };
        match config {
            Some(config) if mistakes.is_empty() => {
                let warnings = of_others.iter().map(|name| format!("{name} is no setting of this program"));
                Ok((config, warnings.collect()))
            }
            _ => Err(Mistakes(mistakes).into()),
        }
    }

    fn from_settings(settings: &Settings, program: &Path) -> Result<Config, Mistake> {
        let read = Reader { settings };
        let data = PathBuf::from(read.text("data"));
        let plugins = match read.some("plugins.dir") {
            Some(folder) => PathBuf::from(folder),
            None => program.parent().unwrap_or(Path::new(".")).join("plugins"),
        };
        let per_plugin = read.plugins()?;
        let disabled = read.disabled()?;
        read.fitting_addresses()?;
        Ok(Config {
            packages_listen: read.parse("packages_listen", values::address)?,
            api_listen: read.parse("api_listen", values::address)?,
            metrics_listen: read.parse_some("metrics_listen", values::address)?,
            metrics_allow: read.parse("metrics_allow", networks::networks)?,
            base_url: read.parse_some("base_url", addresses::base_url)?,
            api_url: read.parse_some("api_url", values::public_url)?,
            store: read.store(&data)?,
            runtime: RuntimeConfig {
                installed: plugins.parent().map(|folder| folder.join("compiled")),
                plugins,
                cache: Some(data.join("cache")),
                compiling: None,
                default_limits: packhouse_runtime::Limits::default(),
                per_plugin,
            },
            trusted_keys: read.paths("plugins.trusted_keys"),
            attestations: read.attestations()?,
            registry_auth: read.some("plugins.registry_auth").map(PathBuf::from),
            disabled,
            log: read.parse("log", values::log_levels)?,
            tracing: read.tracing()?,
            upstream_allow_networks: read.parse("upstream.allow_networks", networks::upstream_networks)?,
            upstream: read.upstream()?,
            webhooks: read.webhooks()?,
            trusted_proxies: read.parse("trusted_proxies", networks::networks)?,
            smtp_url: read.some("smtp_url").map(Secret::new),
            smtp_from: read.some("smtp_from").map(str::to_owned),
            sealing_key: read.parse_some("sealing_key", values::sealing_key)?,
            owner: read.owner()?,
            limits: read.limits()?,
            advisories: read.advisories()?,
            compression: read.parse("responses.compression", values::switch)?,
            kept_response_bytes: read.parse("responses.cache_bytes", values::bytes)?,
            gc_interval: Some(read.millis("gc.interval_ms")?).filter(|interval| !interval.is_zero()),
            audit_days: Some(read.parse("audit_days", values::count)?).filter(|days| *days > 0),
            fetch_days: read.parse("fetch_days", values::fetch_days)?,
            readiness_interval: read.millis("readiness_interval_ms")?.max(SHORTEST_INTERVAL),
            tls: read.tls()?,
            proxy_protocol: read.proxy_protocol()?,
            read_only: read.parse("read_only", values::switch)?,
            maintenance: read.text("maintenance").trim().to_owned(),
            sources: Sources::new(settings),
            data,
        })
    }
}

/// Reads single settings, with errors that say which and from where.
pub(crate) struct Reader<'a> {
    settings: &'a Settings,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", |setting| setting.text.as_str())
    }

    fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Files separated by commas.
    fn paths(&self, name: &str) -> Vec<PathBuf> {
        let parts = self.text(name).split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(PathBuf::from).collect()
    }

    fn mistake(&self, name: &str, reason: &str) -> Mistake {
        Mistake::of(name, self.settings.get(name), reason)
    }

    fn parse<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Mistake> {
        read(self.text(name)).map_err(|reason| self.mistake(name, &reason))
    }

    fn parse_some<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Mistake> {
        self.some(name).map(|_| self.parse(name, read)).transpose()
    }

    fn millis(&self, name: &str) -> Result<Duration, Mistake> {
        self.parse(name, values::count).map(Duration::from_millis)
    }

    fn number(&self, name: &str) -> Result<usize, Mistake> {
        self.parse(name, values::number)
    }

    fn store(&self, data: &Path) -> Result<StoreConfig, Mistake> {
        let defaults = StoreConfig::new(data);
        let database_url =
            self.parse("database_url", |text| match text {
                "" => Ok(defaults.database_url.clone()),
                url if DATABASES.iter().any(|scheme| url.starts_with(scheme)) => Ok(url.to_owned()),
                _ => Err("is no address of a database; write sqlite://PATH or postgres://USER@HOST/NAME"
                    .to_owned()),
            })?;
        let blobs = self.parse("blobs", |text| match text {
            "fs" => Ok(defaults.blobs.clone()),
            url if url.starts_with("s3://") => Ok(BlobsConfig::S3(url.to_owned())),
            _ => Err("is no storage of blobs; write fs or s3://BUCKET?endpoint=…".to_owned()),
        })?;
        let redirects = self.redirects(&blobs)?;
        let (gc_grace, gc_lease) = (self.millis("gc.grace_ms")?, self.millis("gc.lease_ms")?);
        let upload_ttl = self.millis("gc.upload_ttl_ms")?;
        let blobs_idle = self.millis("blobs_idle_ms")?;
        let staging = StagingLimits {
            repository_bytes: self.parse("staging.repository_bytes", values::bytes)?,
            server_bytes: self.parse("staging.server_bytes", values::bytes)?,
            keep_free_bytes: self.parse("staging.keep_free_bytes", values::bytes)?,
        };
        let database = DatabaseLimits {
            statement: self.parse("database.statement_timeout_ms", values::some_millis)?,
            lock: self.parse("database.lock_timeout_ms", values::some_millis)?,
        };
        Ok(StoreConfig {
            database_url,
            database,
            blobs,
            redirects,
            blobs_idle,
            gc_grace,
            gc_lease,
            upload_ttl,
            staging,
            ..defaults
        })
    }

    fn redirects(&self, blobs: &BlobsConfig) -> Result<Option<RedirectsConfig>, Mistake> {
        let min_bytes = self.parse_some("blobs_redirect.min_bytes", values::bytes)?;
        let endpoint = self.parse_some("blobs_redirect.endpoint", values::url)?;
        let lifetime = self.parse("blobs_redirect.lifetime_ms", values::some_millis)?;
        let Some(min_bytes) = min_bytes else { return Ok(None) };
        if !matches!(blobs, BlobsConfig::S3(_)) {
            let reason = "is for blobs in S3, and `blobs` names none; take it out, or set `blobs`";
            return Err(self.mistake("blobs_redirect.min_bytes", reason));
        }
        let endpoint = endpoint.map(|url| url.as_str().trim_end_matches('/').to_owned());
        Ok(Some(RedirectsConfig { min_bytes, endpoint, lifetime }))
    }

    fn tracing(&self) -> Result<Option<Tracing>, Mistake> {
        let sampling_ratio = self.parse("tracing.sampling_ratio", values::ratio)?;
        let Some(endpoint) = self.parse_some("tracing.otlp_endpoint", values::collector)? else {
            return Ok(None);
        };
        let service_name = self.text("tracing.service_name").to_owned();
        Ok(Some(Tracing { endpoint, sampling_ratio, service_name }))
    }

    fn owner(&self) -> Result<Owner, Mistake> {
        let email = self.parse("owner.email", |text| {
            email(text).ok_or_else(|| "is no e-mail address; write as in owner@example.com".to_owned())
        })?;
        Ok(Owner { email, password: self.parse_some("owner.password", new_password)? })
    }

    fn limits(&self) -> Result<Limits, Mistake> {
        Ok(Limits {
            api_body_bytes: self.parse("limits.api_body_bytes", values::bytes)?,
            api_json_tokens: self.parse("limits.api_json_tokens", values::count)?,
            api_bodies_bytes: self.parse("limits.api_bodies_bytes", values::bytes)?,
            api_bodies_bytes_per_address: self.parse("limits.api_bodies_bytes_per_address", values::bytes)?,
            api_body_rate: self.parse("limits.api_body_rate", values::bytes)?,
            body_idle: self.millis("limits.body_idle_ms")?,
            send_idle: self.millis("limits.send_idle_ms")?,
            idle: self.millis("limits.idle_ms")?,
            handshake: self.parse("limits.handshake_ms", values::some_millis)?,
            header: self.millis("limits.header_ms")?,
            connections: self.number("limits.connections")?,
            connections_per_address: self.number("limits.connections_per_address")?,
            organization_request_rate: self.parse("limits.organization_request_rate", values::rate)?,
            credential_request_rate: self.parse("limits.credential_request_rate", values::rate)?,
            drain: self.drain()?,
            shutdown: self.millis("limits.shutdown_ms")?,
        })
    }

    fn upstream(&self) -> Result<UpstreamBounds, Mistake> {
        Ok(UpstreamBounds {
            connect: self.millis("upstream.connect_ms")?,
            idle: self.millis("upstream.idle_ms")?,
            concurrency: self.number("upstream.concurrency")?.max(1),
        })
    }

    /// The formats that any setting names.
    fn formats(&self) -> Vec<String> {
        let mut formats: Vec<String> = self
            .settings
            .keys()
            .filter_map(|name| {
                name.strip_prefix("plugins.")?.split_once('.').map(|(format, _)| format.to_owned())
            })
            .collect();
        formats.dedup();
        formats
    }

    fn disabled(&self) -> Result<Vec<String>, Mistake> {
        let mut disabled = Vec::new();
        for format in self.formats() {
            if self.parse_some(&format!("plugins.{format}.enabled"), values::switch)? == Some(false) {
                disabled.push(format);
            }
        }
        Ok(disabled)
    }

    fn plugins(&self) -> Result<BTreeMap<String, PluginConfig>, Mistake> {
        self.formats().into_iter().map(|format| Ok((format.clone(), self.plugin(&format)?))).collect()
    }

    fn plugin(&self, format: &str) -> Result<PluginConfig, Mistake> {
        let name = |key: &str| format!("plugins.{format}.{key}");
        let size = |key: &str| self.parse_some(&name(key), values::size);
        let mut limits = packhouse_runtime::Limits::default();
        limits.memory_bytes = size("memory_bytes")?.unwrap_or(limits.memory_bytes);
        limits.hostcall_bytes = size("hostcall_bytes")?.unwrap_or(limits.hostcall_bytes);
        let decoded = self.parse_some(&name("decoded_bytes"), values::bytes)?;
        limits.decoded_bytes = decoded.unwrap_or(limits.decoded_bytes);
        limits.handles = size("handles")?.unwrap_or(limits.handles);
        let concurrency = size("concurrency")?;
        limits.concurrency = concurrency.unwrap_or(limits.concurrency);
        if let Some(timeout) = self.parse_some(&name("call_timeout_ms"), values::count)? {
            limits.call_timeout = Duration::from_millis(timeout);
        }
        Ok(PluginConfig {
            limits: Some(limits),
            concurrency_is_set: concurrency.is_some(),
            max_file_bytes: self.parse_some(&name("max_file_bytes"), values::bytes)?,
            max_manifest_bytes: self.parse_some(&name("max_manifest_bytes"), values::bytes)?,
            wasi: self.parse_some(&name("wasi"), values::switch)?.unwrap_or(false),
        })
    }
}

/// Looks that come faster cost more than they tell.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const DATABASES: &[&str] = &["sqlite://", "postgres://", "postgresql://"];

/// The settings as `packhouse config show` prints them.
pub fn show(inputs: &Inputs, program: &Path, json: bool) -> anyhow::Result<String> {
    // What is shown is what would be served with: a value that is wrong is told here as well.
    Config::load(inputs, program)?;
    show::render(&layers::lay(inputs).settings, json)
}
