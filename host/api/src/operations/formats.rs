//! Formats, and switching one on or off for an organization, without a restart and on every server
//! at once. All operations need manage-owner-account.

use std::sync::Arc;

use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_runtime::Plugin;
use packhouse_wire::catalogue;

use super::{Actor, loaded};
use crate::error::ApiError;

/// Format with a loaded plugin.
pub struct LoadedFormat {
    pub plugin: Arc<Plugin>,
    /// True if its repositories are served.
    pub enabled: bool,
}

/// Format that repositories use but for which no plugin is loaded.
#[derive(Debug)]
pub struct MissingFormat {
    pub format: String,
    /// Number of repositories that need it.
    pub repositories: u64,
    /// True if its plugin may still be loaded, because components are being compiled.
    pub is_awaited: bool,
}

pub struct KnownFormats {
    pub loaded: Vec<LoadedFormat>,
    pub missing: Vec<MissingFormat>,
}

/// Returns every format with its state in the actor's organization.
pub async fn list(actor: &Actor) -> Result<KnownFormats, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let (app, organization) = (&actor.app, actor.organization());
    let switched = app.store.formats_enabled(organization).await?;
    let loaded = |plugin: &Arc<Plugin>| {
        let format = &plugin.description().format;
        let own = switched.iter().find(|(name, _)| name == format).map(|(_, enabled)| *enabled);
        LoadedFormat { enabled: app.enabled(format, own), plugin: Arc::clone(plugin) }
    };
    let loaded = app.runtime.current().plugins().iter().map(loaded).collect();
    let used = app.store.formats_in_use(Some(organization)).await?;
    let current = app.runtime.current();
    let missing = used.into_iter().filter(|(format, _)| current.plugin(format).is_none());
    let missing = missing.map(|(format, repositories)| {
        let is_awaited = current.awaits(&format);
        MissingFormat { format, repositories, is_awaited }
    });
    Ok(KnownFormats { loaded, missing: missing.collect() })
}

/// Switches a format on or off in the actor's organization. While it is off, its repositories
/// answer 503 `format_disabled`; their content stays. 404 `not_found` for a format without a loaded
/// plugin, but 503 while plugins are being compiled.
pub async fn switch(actor: &Actor, format: &str, enabled: bool) -> Result<LoadedFormat, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let plugin = loaded::plugin(&actor.app, format)?.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let format = plugin.description().format.as_str();
    let event = actor.event(if enabled { "enable_format" } else { "disable_format" }, format);
    actor.app.store.set_format_enabled(actor.organization(), format, enabled, Some(event)).await?;
    let enabled = actor.app.enabled(format, Some(enabled));
    Ok(LoadedFormat { plugin, enabled })
}
