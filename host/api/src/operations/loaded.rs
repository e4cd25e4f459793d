//! Plugins that operations need. While a server compiles components at its start, one that is not there may still come, and nobody is
//! told that it is not: 503 `server_starting`.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_runtime::Plugin;
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::error::ApiError;

/// The plugin that serves a repository; none where there is none of its format.
pub fn plugin_of(app: &App, repository: &RepositoryRow) -> Result<Option<Arc<Plugin>>, ApiError> {
    let current = app.runtime.current();
    match current.serving(repository.id, &repository.format) {
        Some(plugin) => Ok(Some(Arc::clone(plugin))),
        None if current.awaits(&repository.format) => Err(ApiError::from(&catalogue::SERVER_STARTING)),
        None => Ok(None),
    }
}

/// The plugin that this format runs; none where there is none of it.
pub fn plugin(app: &App, format: &str) -> Result<Option<Arc<Plugin>>, ApiError> {
    let current = app.runtime.current();
    match current.plugin(format) {
        Some(plugin) => Ok(Some(Arc::clone(plugin))),
        None if current.awaits(format) => Err(ApiError::from(&catalogue::SERVER_STARTING)),
        None => Ok(None),
    }
}

/// For what all formats say together: 503 until all are there.
pub fn all(app: &App) -> Result<(), ApiError> {
    if app.runtime.is_whole() { Ok(()) } else { Err(ApiError::from(&catalogue::SERVER_STARTING)) }
}

/// The same refusal in place of `refused`, where that may be wrong once all formats are there.
pub fn unless_starting(app: &App, refused: ApiError) -> ApiError {
    all(app).err().unwrap_or(refused)
}
