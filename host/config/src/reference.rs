//! Lists of all settings, from which docs/reference/settings.md is generated.

pub use crate::key::{SettingKey, ValueKind};

/// Returns every setting except those of single plugins, in the order of the tables.
pub fn settings() -> impl Iterator<Item = &'static SettingKey> {
    crate::keys::keys()
}

/// Returns the settings of one plugin, without their prefix `plugins.FORMAT.`.
pub fn plugin_settings() -> impl Iterator<Item = &'static SettingKey> {
    crate::plugin_keys::PLUGIN_KEYS.iter()
}

/// Returns whether a change of this setting takes effect without a restart.
pub fn is_reloadable(name: &str) -> bool {
    crate::reload::is_live(name)
}
