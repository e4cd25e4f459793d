//! Comparison of two readings of the settings: which settings changed, and which changes need a
//! restart.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::key::ValueKind;
use super::setting::Settings;

/// Settings whose changes take effect without a restart. A name that ends with a dot stands for all
/// settings with this prefix.
const LIVE: [&str; 8] = [
    "log",
    "limits.",
    "trusted_proxies",
    "upstream.allow_networks",
    "tls.",
    "read_only",
    "maintenance",
    "attestations.",
];
/// Exceptions to `LIVE`. The server creates the objects that these settings configure only once in
/// its lifetime.
const FIXED: [&str; 6] = [
    "limits.connections",
    "limits.api_bodies_bytes",
    "limits.api_bodies_bytes_per_address",
    "tls.redirect_listen",
    "tls.hsts_s",
    "tls.acme.",
];

/// Text and source of each setting. `Debug` shows neither.
#[derive(Clone)]
pub struct Sources(Arc<Settings>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Names of the settings that differ in a new reading.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changed {
    /// Settings whose new values take effect at once.
    pub live: Vec<String>,
    /// Settings whose new values take effect after a restart.
    pub needs_restart: Vec<String>,
}

impl Sources {
    pub(crate) fn new(settings: &Settings) -> Sources {
        Sources(Arc::new(settings.clone()))
    }

    /// Compares these settings with new ones.
    pub fn changed(&self, new: &Sources) -> Changed {
        let mut changed = Changed::default();
        let names = self.0.keys().chain(new.0.keys().filter(|name| !self.0.contains_key(*name)));
        let text = |settings: &Settings, name: &str| settings.get(name).map(|setting| setting.text.clone());
        for name in names.filter(|name| text(&self.0, name) != text(&new.0, name)) {
            if is_live(name) {
                changed.live.push(name.clone());
            } else {
                changed.needs_restart.push(name.clone());
            }
        }
        changed
    }

    /// Returns whether a setting with this name exists.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the source of the setting as text.
    pub fn of(&self, name: &str) -> String {
        self.0.get(name).map_or_else(|| "default".to_owned(), |setting| setting.source.to_string())
    }

    /// Returns the setting and its source as text, for example `tls.cert = "a.pem" (file x, line
    /// 3)`. Leaves out the text of a secret.
    pub fn label(&self, name: &str) -> String {
        match self.0.get(name) {
            Some(setting) if setting.key.kind == ValueKind::Secret => format!("{name} ({})", setting.source),
            Some(setting) => format!("{name} = {:?} ({})", setting.text, setting.source),
            None => name.to_owned(),
        }
    }

    /// Returns the text of this setting, or null for a secret.
    pub fn public_text(&self, name: &str) -> Value {
        match self.0.get(name) {
            Some(setting) if setting.key.kind != ValueKind::Secret => json!(setting.text),
            _ => Value::Null,
        }
    }
}

pub(crate) fn is_live(name: &str) -> bool {
    let among = |list: &[&str]| {
        list.iter().any(|entry| if entry.ends_with('.') { name.starts_with(entry) } else { name == *entry })
    };
    among(&LIVE) && !among(&FIXED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::keys;

    #[test]
    fn every_listed_name_is_a_setting() {
        for entry in LIVE.iter().chain(&FIXED) {
            let known =
                |name: &str| if entry.ends_with('.') { name.starts_with(entry) } else { name == *entry };
            assert!(keys().any(|key| known(key.name)), "{entry}");
        }
        assert!(is_live("limits.body_idle_ms") && is_live("tls.cert") && is_live("log"));
        assert!(!is_live("limits.connections") && !is_live("data") && !is_live("tls.acme.email"));
    }
}
