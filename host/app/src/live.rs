//! Settings that may change while the server runs.

use crate::rate_limits::RateLimits;
use packhouse_config::live::Live;
use packhouse_config::{Config, Limits, Network};

/// What holds at present; who needs one of them asks for it each time.
#[derive(Clone)]
pub struct LiveSettings {
    /// Bounds of connections and bodies.
    pub limits: Live<Limits>,
    /// Whose forwarding headers count.
    pub trusted_proxies: Live<Vec<Network>>,
    /// Whether whatever changes packages or accounts is refused.
    pub read_only: Live<bool>,
    /// What everybody is told while nothing is served; empty while the server serves.
    pub maintenance: Live<String>,
    /// How many requests an organization and a credential may make.
    pub rates: RateLimits,
    /// The whole of the settings as they were read last.
    pub read: Live<Config>,
}

impl LiveSettings {
    /// As they are at the start.
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

    /// Takes what may change from settings that were read anew.
    pub fn take(&self, config: Config) {
        self.limits.set(config.limits);
        self.trusted_proxies.set(config.trusted_proxies.clone());
        self.read_only.set(config.read_only);
        self.maintenance.set(config.maintenance.clone());
        self.rates.set(&config.limits);
        self.read.set(config);
    }
}
