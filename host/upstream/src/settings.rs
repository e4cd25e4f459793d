//! The settings of a proxy repository that concern its upstream.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use packhouse_config::UpstreamBounds;
use packhouse_names::ReleaseRules;
use packhouse_runtime::{Freshness, RepositoryView, ServiceError};
use packhouse_store::CachedAnswer;
use serde::Deserialize;
use url::Url;

/// The largest response, in bytes, where the plugin named no limit: of a file, which never changes, and of metadata.
const FILE_BYTES: u64 = 50_000_000_000;
const METADATA_BYTES: u64 = 256 * 1024 * 1024;
/// The longest time for which an upstream may send nothing, in seconds.
const MAX_TIMEOUT_S: u64 = 3600;

/// See the module. Every default is filled in.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ProxySettings {
    /// The upstream's address. Relative targets lie below it.
    #[serde(deserialize_with = "address")]
    pub upstream: Url,
    metadata_ttl_s: u64,
    negative_ttl_s: u64,
    /// Whether a cached response is served when the upstream fails.
    pub stale_on_error: bool,
    /// Which releases may be offered.
    #[serde(flatten)]
    pub releases: ReleaseRules,
    /// Whether no request is sent to the upstream.
    pub offline: bool,
    /// How long the upstream may send nothing, in seconds; none as the server's configuration says.
    upstream_timeout_s: Option<u64>,
    /// The limit of the cache, in bytes.
    pub cache_max_bytes: Option<u64>,
    /// The address of the proxy in the operator's network through which the upstream is reached.
    pub egress_proxy: Option<String>,
    /// Certificate authorities, as PEM, that are trusted besides those of the system.
    pub ca_pem: Option<String>,
}

impl ProxySettings {
    /// Reads a repository's settings. `Denied` for one that is no proxy, `Other` for settings that cannot be read.
    pub(crate) fn of(view: &RepositoryView) -> Result<ProxySettings, ServiceError> {
        if &*view.kind != "proxy" {
            return Err(ServiceError::Denied);
        }
        serde_json::from_str(&view.settings)
            .map_err(|error| ServiceError::Other(format!("the settings of {}: {error}", view.name)))
    }

    /// Those of a server at this address that is asked directly, and of whose answers nothing is kept.
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

    /// A hash of the settings that a connection depends on.
    pub(crate) fn connection(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.upstream.as_str(), &self.egress_proxy, &self.ca_pem, self.upstream_timeout_s).hash(&mut hasher);
        hasher.finish()
    }

    /// The bounds of the server's configuration, with what the repository sets for itself.
    pub(crate) fn bounds(&self, bounds: UpstreamBounds) -> UpstreamBounds {
        let own = self.upstream_timeout_s.map(|seconds| Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT_S)));
        UpstreamBounds { idle: own.unwrap_or(bounds.idle), ..bounds }
    }

    /// Whether a cached response may be served at `now` (ms since 1970) without asking the upstream.
    pub(crate) fn is_fresh(&self, answer: &CachedAnswer, freshness: Option<Freshness>, now: i64) -> bool {
        match self.fresh_until(answer, freshness) {
            None => true,
            // A response from the future means that the clock was set back.
            Some(until) => answer.validated_at <= now && now < until,
        }
    }

    /// The moment (ms since 1970) up to which a cached response may be served without asking the upstream; none for ever.
    pub(crate) fn fresh_until(&self, answer: &CachedAnswer, freshness: Option<Freshness>) -> Option<i64> {
        let seconds = self.fresh_seconds(freshness)?;
        Some(answer.validated_at.saturating_add(millis(seconds)))
    }

    /// Whether a response is fresh for any time at all, so that one which another server fetches serves here as well.
    pub(crate) fn keeps(&self, freshness: Option<Freshness>) -> bool {
        self.fresh_seconds(freshness) != Some(0)
    }

    /// For how many seconds; none for ever.
    fn fresh_seconds(&self, freshness: Option<Freshness>) -> Option<u64> {
        match freshness {
            Some(Freshness::Immutable) => None,
            Some(Freshness::Never) => Some(0),
            Some(Freshness::Seconds(seconds)) => Some(u64::from(seconds)),
            None => Some(self.metadata_ttl_s),
        }
    }

    /// For how many ms metadata are fresh.
    pub(crate) fn metadata_ms(&self) -> i64 {
        millis(self.metadata_ttl_s)
    }

    /// For how many ms a response that nothing is there is remembered.
    pub(crate) fn negative_ms(&self) -> i64 {
        millis(self.negative_ttl_s)
    }

    /// The largest response, in bytes.
    pub(crate) fn limit(wanted: Option<u64>, freshness: Option<Freshness>) -> u64 {
        let most = if freshness == Some(Freshness::Immutable) { FILE_BYTES } else { METADATA_BYTES };
        wanted.unwrap_or(most)
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
    fn freshness_is_the_plugins_and_else_the_repositorys() {
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
    fn what_is_fresh_is_so_up_to_a_moment() {
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
        assert_ne!(longer.connection(), settings("{}").connection(), "its connections are made anew");
    }

    #[test]
    fn the_rules_for_releases_stand_among_the_settings() {
        let rules = |change: &str| settings(change).releases;
        let told = r#"{"min_release_age_s": 10, "min_release_age_except": ["lib"], "keep_withdrawn": true}"#;
        assert_eq!(rules(told), serde_json::from_str(told).unwrap());
        assert_eq!(rules("{}"), ReleaseRules::default());
    }
}
