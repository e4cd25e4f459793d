//! Plugins that operations need. While the starting server compiles components, a missing plugin
//! may still be loaded, so operations answer 503 `server_starting` instead of an error about it.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_runtime::Plugin;
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::error::ApiError;

/// Returns the plugin that serves a repository, if one is loaded.
pub fn plugin_of(app: &App, repository: &RepositoryRow) -> Result<Option<Arc<Plugin>>, ApiError> {
    let current = app.runtime.current();
    match current.serving(repository.id, &repository.format) {
        Some(plugin) => Ok(Some(Arc::clone(plugin))),
        None if current.awaits(&repository.format) => Err(ApiError::from(&catalogue::SERVER_STARTING)),
        None => Ok(None),
    }
}

/// Returns the active plugin of a format, if one is loaded.
pub fn plugin(app: &App, format: &str) -> Result<Option<Arc<Plugin>>, ApiError> {
    let current = app.runtime.current();
    match current.plugin(format) {
        Some(plugin) => Ok(Some(Arc::clone(plugin))),
        None if current.awaits(format) => Err(ApiError::from(&catalogue::SERVER_STARTING)),
        None => Ok(None),
    }
}

/// Requires that all plugins are loaded: 503 until then.
pub fn all(app: &App) -> Result<(), ApiError> {
    if app.runtime.is_whole() { Ok(()) } else { Err(ApiError::from(&catalogue::SERVER_STARTING)) }
}

/// Replaces `refused` by 503 while plugins are being compiled, because `refused` may no longer
/// apply afterwards.
pub fn unless_starting(app: &App, refused: ApiError) -> ApiError {
    all(app).err().unwrap_or(refused)
}
