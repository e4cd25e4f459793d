//! Settings of a proxy repository that concern its upstream.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use packhouse_config::UpstreamBounds;
use packhouse_names::ReleaseRules;
use packhouse_runtime::{Freshness, RepositoryView, ServiceError};
use packhouse_store::CachedAnswer;
use serde::Deserialize;
use url::Url;

/// Maximum size of a response in bytes if the plugin sets no limit: for an immutable file, and for
/// metadata.
const FILE_BYTES: u64 = 50_000_000_000;
const METADATA_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum time without a byte from the upstream, in seconds.
const MAX_TIMEOUT_S: u64 = 3600;

/// A proxy's settings, with all defaults filled in.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ProxySettings {
    /// Address of the upstream. Relative targets are below it.
    #[serde(deserialize_with = "address")]
    pub upstream: Url,
    metadata_ttl_s: u64,
    negative_ttl_s: u64,
    /// True if the proxy serves a stale cached response when the upstream fails.
    pub stale_on_error: bool,
    /// Rules for the releases that may be offered.
    #[serde(flatten)]
    pub releases: ReleaseRules,
    /// True if the proxy sends no requests to the upstream.
    pub offline: bool,
    /// Maximum time without a byte from the upstream, in seconds. None for the server's default.
    upstream_timeout_s: Option<u64>,
    /// Maximum size of the cache, in bytes.
    pub cache_max_bytes: Option<u64>,
    /// Address of the operator's HTTP proxy through which the upstream is reached.
    pub egress_proxy: Option<String>,
    /// Trusted certificate authorities besides the system's, as PEM.
    pub ca_pem: Option<String>,
}

impl ProxySettings {
    /// Reads a repository's settings. `Denied` if it is not a proxy, `Other` if the settings cannot
    /// be read.
    pub(crate) fn of(view: &RepositoryView) -> Result<ProxySettings, ServiceError> {
        if &*view.kind != "proxy" {
            return Err(ServiceError::Denied);
        }
        serde_json::from_str(&view.settings)
            .map_err(|error| ServiceError::Other(format!("the settings of {}: {error}", view.name)))
    }

    /// Returns settings for a server that is queried directly and whose responses are not cached.
    pub(crate) fn plain(upstream: &Url) -> ProxySettings {
        ProxySettings {
            upstream: upstream.clone(),
            metadata_ttl_s: 0,
            negative_ttl_s: 0,
            stale_on_error: false,
            releases: ReleaseRules::default(),
            offline: false,
            upstream_timeout_s: None,
            cache_max_bytes: None,
            egress_proxy: None,
            ca_pem: None,
        }
    }

    /// Returns a hash of the settings that a connection depends on.
    pub(crate) fn connection(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.upstream.as_str(), &self.egress_proxy, &self.ca_pem, self.upstream_timeout_s).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the limits of the server's configuration, overridden by the limits in the
    /// repository's settings.
    pub(crate) fn bounds(&self, bounds: UpstreamBounds) -> UpstreamBounds {
        let own = self.upstream_timeout_s.map(|seconds| Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT_S)));
        UpstreamBounds { idle: own.unwrap_or(bounds.idle), ..bounds }
    }

    /// Returns true if a cached response may be served at `now` (ms since 1970) without asking the
    /// upstream.
    pub(crate) fn is_fresh(&self, answer: &CachedAnswer, freshness: Option<Freshness>, now: i64) -> bool {
        match self.fresh_until(answer, freshness) {
            None => true,
            // A response from the future means that the clock was set back.
            Some(until) => answer.validated_at <= now && now < until,
        }
    }

    /// Returns until when (ms since 1970) a cached response may be served without asking the
    /// upstream. None means forever.
    pub(crate) fn fresh_until(&self, answer: &CachedAnswer, freshness: Option<Freshness>) -> Option<i64> {
        let seconds = self.fresh_seconds(freshness)?;
        Some(answer.validated_at.saturating_add(millis(seconds)))
    }

    /// Returns true if a response stays fresh for longer than zero seconds. Only then can this
    /// server use a response that another server fetched.
    pub(crate) fn keeps(&self, freshness: Option<Freshness>) -> bool {
        self.fresh_seconds(freshness) != Some(0)
    }

    /// Returns how many seconds a response is fresh. None means forever.
    fn fresh_seconds(&self, freshness: Option<Freshness>) -> Option<u64> {
        match freshness {
            Some(Freshness::Immutable) => None,
            Some(Freshness::Never) => Some(0),
            Some(Freshness::Seconds(seconds)) => Some(u64::from(seconds)),
            None => Some(self.metadata_ttl_s),
        }
    }

    /// Returns how many ms metadata are fresh.
    pub(crate) fn metadata_ms(&self) -> i64 {
        millis(self.metadata_ttl_s)
    }

    /// Returns how many ms a "not found" response is cached.
    pub(crate) fn negative_ms(&self) -> i64 {
        millis(self.negative_ttl_s)
    }

    /// Returns the maximum size of a response, in bytes.
    pub(crate) fn limit(requested: Option<u64>, freshness: Option<Freshness>) -> u64 {
        let most = if freshness == Some(Freshness::Immutable) { FILE_BYTES } else { METADATA_BYTES };
        requested.unwrap_or(most)
    }
}

fn address<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(change: &str) -> ProxySettings {
        let mut settings: serde_json::Value =
            serde_json::Value::Object(packhouse_config::repository_settings::effective("{}", false, None));
        settings["upstream"] = "https://upstream.test/files/".into();
        let change: serde_json::Value = serde_json::from_str(change).unwrap();
        for (name, value) in change.as_object().unwrap() {
            settings[name] = value.clone();
        }
        serde_json::from_value(settings).unwrap()
    }

    fn answer(validated_at: i64) -> CachedAnswer {
        CachedAnswer {
            name: [0; 32],
            method: "GET".to_owned(),
            target: String::new(),
            status: 200,
            headers: Vec::new(),
            address: String::new(),
            blob: None,
            fetched_at: 0,
            validated_at,
        }
    }

    #[test]
    fn the_plugins_freshness_wins_over_the_repositorys() {
        let settings = settings(r#"{"metadata_ttl_s": 10}"#);
        for (age, freshness, fresh) in [
            (9_999, None, true),
            (10_000, None, false),
            (-1, None, false),
            (1_000_000_000, Some(Freshness::Immutable), true),
            (0, Some(Freshness::Never), false),
            (999, Some(Freshness::Seconds(1)), true),
            (0, Some(Freshness::Seconds(0)), false),
        ] {
            assert_eq!(settings.is_fresh(&answer(0), freshness, age), fresh, "{age} {freshness:?}");
        }
    }

    #[test]
    fn a_response_is_fresh_up_to_a_moment() {
        let settings = settings(r#"{"metadata_ttl_s": 10}"#);
        for (freshness, until) in [
            (None, Some(11_000)),
            (Some(Freshness::Seconds(2)), Some(3_000)),
            (Some(Freshness::Seconds(u32::MAX)), Some(1_000 + i64::from(u32::MAX) * 1_000)),
            (Some(Freshness::Never), Some(1_000)),
            (Some(Freshness::Immutable), None),
        ] {
            assert_eq!(settings.fresh_until(&answer(1_000), freshness), until, "{freshness:?}");
        }
    }

    #[test]
    fn a_repository_may_wait_longer_than_the_server() {
        let second = Duration::from_secs(1);
        let bounds = UpstreamBounds { connect: second, idle: second, concurrency: 1 };
        for (change, idle) in
            [("{}", 1), (r#"{"upstream_timeout_s": 60}"#, 60), (r#"{"upstream_timeout_s": 0}"#, 1)]
        {
            assert_eq!(settings(change).bounds(bounds).idle.as_secs(), idle, "{change}");
        }
        let longer = settings(r#"{"upstream_timeout_s": 60}"#);
        assert_ne!(longer.connection(), settings("{}").connection(), "another timeout needs new connections");
    }

    #[test]
    fn release_rules_are_read_from_the_settings() {
        let rules = |change: &str| settings(change).releases;
        let text = r#"{"min_release_age_s": 10, "min_release_age_except": ["lib"], "keep_withdrawn": true}"#;
        assert_eq!(rules(text), serde_json::from_str(text).unwrap());
        assert_eq!(rules("{}"), ReleaseRules::default());
    }
}
