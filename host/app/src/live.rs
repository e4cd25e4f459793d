//! Settings that may change while the server runs.

use crate::rate_limits::RateLimits;
use packhouse_config::live::Live;
use packhouse_config::{Config, Limits, Network};

/// Current values of the settings that may change. Callers read a value again for each use.
#[derive(Clone)]
pub struct LiveSettings {
    pub limits: Live<Limits>,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Live<Vec<Network>>,
    /// True if the server refuses changes of packages and accounts.
    pub read_only: Live<bool>,
    /// Message to all clients during maintenance; empty if the server is not in maintenance.
    pub maintenance: Live<String>,
    /// Limits for the request rates of organizations and credentials.
    pub rates: RateLimits,
    /// All settings, as the server last read them.
    pub read: Live<Config>,
}

impl LiveSettings {
    /// Creates the values from the settings that the server started with.
    pub fn new(config: &Config) -> LiveSettings {
        LiveSettings {
            limits: Live::new(config.limits),
            trusted_proxies: Live::new(config.trusted_proxies.clone()),
            read_only: Live::new(config.read_only),
            maintenance: Live::new(config.maintenance.clone()),
            rates: RateLimits::new(&config.limits),
            read: Live::new(config.clone()),
        }
    }

    /// Takes over the values that may change from settings that the server read again.
    pub fn take(&self, config: Config) {
        self.limits.set(config.limits);
        self.trusted_proxies.set(config.trusted_proxies.clone());
        self.read_only.set(config.read_only);
        self.maintenance.set(config.maintenance.clone());
        self.rates.set(&config.limits);
        self.read.set(config);
    }
}
