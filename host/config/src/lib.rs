//! Settings of the server, from a TOML file, the environment and the command line; the later source
//! wins. Each value keeps its source. An unknown key is an error that names the nearest known key.

pub mod addresses;
mod advisories;
mod attestations;
mod bound_keys;
pub mod client_network;
mod config_error;
mod drain;
mod email;
mod key;
mod keys;
mod layers;
mod limits;
pub mod live;
mod networks;
mod plugin_keys;
pub mod reference;
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
pub use config_error::{ConfigError, ConfigErrors};
pub use email::{email, email_domain};
pub use layers::Inputs;
pub use limits::Limits;
pub use networks::{Network, UpstreamNetwork, upstream_networks};
pub use reload::{Changed, Sources};
pub use secret::{API_TOKEN_PREFIX, Secret, TOKEN_PREFIX, new_password, says_api_token, says_token};
pub use setting::{Setting, Settings, Source};
pub use values::{SHORTEST_SEALING_KEY, bytes};
pub use webhooks::WebhookBounds;

/// All settings, parsed and checked.
#[derive(Clone, Debug)]
pub struct Config {
    pub data: PathBuf,
    /// `host:port` of the repository host's listener.
    pub packages_listen: String,
    /// `host:port` of the API's listener.
    pub api_listen: String,
    /// `host:port` of a listener that serves only /metrics.
    pub metrics_listen: Option<String>,
    /// Networks whose clients may read /metrics on the API's listener.
    pub metrics_allow: Vec<Network>,
    pub base_url: Option<Url>,
    pub api_url: Option<Url>,
    /// Storage of records and blobs.
    pub store: StoreConfig,
    pub runtime: RuntimeConfig,
    /// PEM files of trusted public keys. Each component that an operator installs must be signed
    /// with one of these keys. If the list is empty, the server checks only digests.
    pub trusted_keys: Vec<PathBuf>,
    /// Trust in signed statements about packages.
    pub attestations: AttestationTrust,
    /// File with registry credentials, in Docker's format.
    pub registry_auth: Option<PathBuf>,
    /// Formats that are switched off unless an organization switches them on.
    pub disabled: Vec<String>,
    /// A log level, or levels by target, for example `info,packhouse_store=debug`.
    pub log: String,
    /// Destination of request traces, if any.
    pub tracing: Option<Tracing>,
    /// Non-public networks in which upstreams are allowed.
    pub upstream_allow_networks: Vec<UpstreamNetwork>,
    /// Limits of requests to upstreams.
    pub upstream: UpstreamBounds,
    pub webhooks: WebhookBounds,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<Network>,
    /// The mail server, with user and password.
    pub smtp_url: Option<Secret>,
    pub smtp_from: Option<String>,
    /// Key that encrypts secrets which the server must be able to read again.
    pub sealing_key: Option<Secret>,
    pub owner: Owner,
    /// Limits of connections and bodies.
    pub limits: Limits,
    pub advisories: AdvisoryRules,
    /// Compresses documents for clients that accept it.
    pub compression: bool,
    /// Memory for cached plugin responses, in bytes.
    pub response_cache_bytes: u64,
    /// Interval between garbage collections; `None` turns them off.
    pub gc_interval: Option<Duration>,
    /// Days for which the audit log is kept; `None` keeps it for ever.
    pub audit_days: Option<u64>,
    /// Days for which the server records the versions that each token fetched; 0 turns the
    /// recording off.
    pub fetch_days: i64,
    pub readiness_interval: Duration,
    pub tls: tls::TlsSettings,
    /// True if trusted proxies begin each connection with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// Refuses changes of packages and accounts.
    pub read_only: bool,
    /// Message to all clients during maintenance; empty if the server is not in maintenance.
    pub maintenance: String,
    /// Text and source of every setting.
    pub sources: Sources,
}

/// Request traces, sent by OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct Tracing {
    /// Address to which the server posts spans.
    pub endpoint: Url,
    /// Share of the traces that the server sends, from 0 to 1.
    pub sampling_ratio: f64,
    /// Name of this server in traces.
    pub service_name: String,
}

#[derive(Clone, Copy, Debug)]
pub struct UpstreamBounds {
    pub connect: Duration,
    /// Longest time without a byte of the response.
    pub idle: Duration,
    /// Most concurrent requests to one upstream.
    pub concurrency: usize,
}

/// Owner that the server creates in an empty database.
#[derive(Clone, Debug)]
pub struct Owner {
    pub email: String,
    /// Password of the owner; `None` means that the server chooses a random one.
    pub password: Option<Secret>,
}

impl Config {
    /// Reads and checks the settings. `program` is the path of the running program; the default
    /// plugin folder is next to this file. Returns the settings, and warnings for the log. The
    /// error is [`ConfigErrors`], which contains all errors.
    pub fn load(inputs: &Inputs, program: &Path) -> anyhow::Result<(Config, Vec<String>)> {
        let layers::MergedSettings { mut settings, foreign, mut errors } = layers::merge(inputs);
        let config = loop {
            match Config::from_settings(&settings, program) {
                Ok(config) => break Some(config),
                Err(error) => {
                    // Reset this setting, so that the next pass can find further errors.
                    let again = error.key.as_ref().is_some_and(|key| layers::forget(&mut settings, key));
                    errors.push(error);
                    if !again {
                        break None;
                    }
                }
            }
        };
        match config {
            Some(config) if errors.is_empty() => {
                let warnings = foreign.iter().map(|name| format!("{name} is not a setting of packhouse"));
                Ok((config, warnings.collect()))
            }
            _ => Err(ConfigErrors(errors).into()),
        }
    }

    fn from_settings(settings: &Settings, program: &Path) -> Result<Config, ConfigError> {
        let read = SettingsReader { settings };
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
            response_cache_bytes: read.parse("responses.cache_bytes", values::bytes)?,
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

/// Reads single settings. Each error names the setting and its source.
pub(crate) struct SettingsReader<'a> {
    settings: &'a Settings,
}

impl SettingsReader<'_> {
    fn text(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", |setting| setting.text.as_str())
    }

    fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Splits a list of file names at its commas.
    fn paths(&self, name: &str) -> Vec<PathBuf> {
        let parts = self.text(name).split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(PathBuf::from).collect()
    }

    fn error(&self, name: &str, reason: &str) -> ConfigError {
        ConfigError::of(name, self.settings.get(name), reason)
    }

    fn parse<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        read(self.text(name)).map_err(|reason| self.error(name, &reason))
    }

    fn parse_some<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        self.some(name).map(|_| self.parse(name, read)).transpose()
    }

    fn millis(&self, name: &str) -> Result<Duration, ConfigError> {
        self.parse(name, values::count).map(Duration::from_millis)
    }

    fn number(&self, name: &str) -> Result<usize, ConfigError> {
        self.parse(name, values::number)
    }

    fn store(&self, data: &Path) -> Result<StoreConfig, ConfigError> {
        let defaults = StoreConfig::new(data);
        let database_url = self.parse("database_url", |text| match text {
            "" => Ok(defaults.database_url.clone()),
            url if DATABASES.iter().any(|scheme| url.starts_with(scheme)) => Ok(url.to_owned()),
            _ => Err("is not a database URL; expected sqlite://PATH or postgres://USER@HOST/NAME".to_owned()),
        })?;
        let blobs = self.parse("blobs", |text| match text {
            "fs" => Ok(defaults.blobs.clone()),
            url if url.starts_with("s3://") => Ok(BlobsConfig::S3(url.to_owned())),
            _ => Err("is not a blob storage; expected fs or s3://BUCKET?endpoint=…".to_owned()),
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

    fn redirects(&self, blobs: &BlobsConfig) -> Result<Option<RedirectsConfig>, ConfigError> {
        let min_bytes = self.parse_some("blobs_redirect.min_bytes", values::bytes)?;
        let endpoint = self.parse_some("blobs_redirect.endpoint", values::url)?;
        let lifetime = self.parse("blobs_redirect.lifetime_ms", values::some_millis)?;
        let Some(min_bytes) = min_bytes else { return Ok(None) };
        if !matches!(blobs, BlobsConfig::S3(_)) {
            let reason = "works only with blobs in S3, but `blobs` does not name a bucket; remove this \
                setting, or set `blobs`";
            return Err(self.error("blobs_redirect.min_bytes", reason));
        }
        let endpoint = endpoint.map(|url| url.as_str().trim_end_matches('/').to_owned());
        Ok(Some(RedirectsConfig { min_bytes, endpoint, lifetime }))
    }

    fn tracing(&self) -> Result<Option<Tracing>, ConfigError> {
        let sampling_ratio = self.parse("tracing.sampling_ratio", values::ratio)?;
        let Some(endpoint) = self.parse_some("tracing.otlp_endpoint", values::collector)? else {
            return Ok(None);
        };
        let service_name = self.text("tracing.service_name").to_owned();
        Ok(Some(Tracing { endpoint, sampling_ratio, service_name }))
    }

    fn owner(&self) -> Result<Owner, ConfigError> {
        let email = self.parse("owner.email", |text| {
            email(text).ok_or_else(|| "is not an e-mail address such as owner@example.com".to_owned())
        })?;
        Ok(Owner { email, password: self.parse_some("owner.password", new_password)? })
    }

    fn upstream(&self) -> Result<UpstreamBounds, ConfigError> {
        Ok(UpstreamBounds {
            connect: self.millis("upstream.connect_ms")?,
            idle: self.millis("upstream.idle_ms")?,
            concurrency: self.number("upstream.concurrency")?.max(1),
        })
    }

    /// Returns the formats for which any setting is set.
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

    fn disabled(&self) -> Result<Vec<String>, ConfigError> {
        let mut disabled = Vec::new();
        for format in self.formats() {
            if self.parse_some(&format!("plugins.{format}.enabled"), values::switch)? == Some(false) {
                disabled.push(format);
            }
        }
        Ok(disabled)
    }

    fn plugins(&self) -> Result<BTreeMap<String, PluginConfig>, ConfigError> {
        self.formats().into_iter().map(|format| Ok((format.clone(), self.plugin(&format)?))).collect()
    }

    fn plugin(&self, format: &str) -> Result<PluginConfig, ConfigError> {
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

/// Shortest interval that is accepted. A shorter one would cost more than it is worth.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const DATABASES: &[&str] = &["sqlite://", "postgres://", "postgresql://"];

/// Renders the settings for `packhouse config show`.
pub fn show(inputs: &Inputs, program: &Path, json: bool) -> anyhow::Result<String> {
    // The command shows only valid settings, so it reports an invalid value here.
    Config::load(inputs, program)?;
    show::render(&layers::merge(inputs).settings, json)
}
