//! The formats there are, and switching one on or off for an organization, without a restart and on every server at once. All of it needs
//! manage-owner-account.

use std::sync::Arc;

use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_runtime::Plugin;
use packhouse_wire::catalogue;

use super::{Actor, loaded};
use crate::error::ApiError;

/// A format that a plugin is loaded of.
pub struct LoadedFormat {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Whether its repositories are served.
    pub enabled: bool,
}

/// A format that repositories have and no plugin is loaded of.
#[derive(Debug)]
pub struct MissingFormat {
    /// Its name.
    pub format: String,
    /// How many repositories need it.
    pub repositories: u64,
    /// Whether a plugin of it may still come: components are being compiled.
    pub is_awaited: bool,
}

/// Every format.
pub struct KnownFormats {
    /// Those of plugins.
    pub loaded: Vec<LoadedFormat>,
    /// Those of repositories alone.
    pub missing: Vec<MissingFormat>,
}

/// Every format, as it is in the actor's organization.
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

/// Switches a format on or off in the actor's organization. While it is off, its repositories answer 503 `format_disabled`; nothing of
/// them is lost. 404 `not_found` for a format that no plugin is loaded of, and 503 while one may still come.
pub async fn switch(actor: &Actor, format: &str, enabled: bool) -> Result<LoadedFormat, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let plugin = loaded::plugin(&actor.app, format)?.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let format = plugin.description().format.as_str();
    let event = actor.event(if enabled { "enable_format" } else { "disable_format" }, format);
    actor.app.store.set_format_enabled(actor.organization(), format, enabled, Some(event)).await?;
    let enabled = actor.app.enabled(format, Some(enabled));
    Ok(LoadedFormat { plugin, enabled })
}
