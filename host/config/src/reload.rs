//! What changed between two readings of the settings, and what of it takes effect without a restart.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::key::Kind;
use super::setting::Settings;

/// Settings that hold from the moment they are read again; a name that ends in a dot stands for all below it.
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
/// Of those below, what is made once for the life of the process.
const FIXED: [&str; 6] = [
    "limits.connections",
    "limits.api_bodies_bytes",
    "limits.api_bodies_bytes_per_address",
    "tls.redirect_listen",
    "tls.hsts_s",
    "tls.acme.",
];

/// What was written for each setting, and where. Shows nothing of it.
#[derive(Clone)]
pub struct Sources(Arc<Settings>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// What differs in a new reading, by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changed {
    /// What takes effect.
    pub live: Vec<String>,
    /// What needs a restart.
    pub needs_restart: Vec<String>,
}

impl Sources {
    pub(crate) fn new(settings: &Settings) -> Sources {
        Sources(Arc::new(settings.clone()))
    }

    /// From these to those.
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

    /// Whether somebody set it.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Where this setting came from, as people read it.
    pub fn of(&self, name: &str) -> String {
        self.0.get(name).map_or_else(|| "default".to_owned(), |setting| setting.source.to_string())
    }

    /// The setting as people read it, with where it came from: `tls.cert = "a.pem" (file x, line 3)`; of a secret the place alone.
    pub fn label(&self, name: &str) -> String {
        match self.0.get(name) {
            Some(setting) if setting.key.kind == Kind::Secret => format!("{name} ({})", setting.source),
            Some(setting) => format!("{name} = {:?} ({})", setting.text, setting.source),
            None => name.to_owned(),
        }
    }

    /// What was written for this setting, unless it is a secret.
    pub fn shown(&self, name: &str) -> Value {
        match self.0.get(name) {
            Some(setting) if setting.key.kind != Kind::Secret => json!(setting.text),
            _ => Value::Null,
        }
    }
}

fn is_live(name: &str) -> bool {
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
    fn what_is_listed_is_a_setting() {
        for entry in LIVE.iter().chain(&FIXED) {
            let known =
                |name: &str| if entry.ends_with('.') { name.starts_with(entry) } else { name == *entry };
            assert!(keys().any(|key| known(key.name)), "{entry}");
        }
        assert!(is_live("limits.body_idle_ms") && is_live("tls.cert") && is_live("log"));
        assert!(!is_live("limits.connections") && !is_live("data") && !is_live("tls.acme.email"));
    }
}
