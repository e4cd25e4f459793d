//! The step route: the plugin says what the request would do. It runs in an instance that can reach nothing.

use std::sync::Arc;

use packhouse_runtime::{Intent, Plugin, RequestHead};

use crate::error_response::HttpError;
use crate::plugin_failure::failed;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};

/// What a plugin says of a request: what it would do, or the plugin's own refusal.
pub(crate) type Routed = Result<Arc<Intent>, HttpError>;

/// Asks the plugin, unless the intent is known: with a cached response, or from what a format opens to anybody. The outer error is
/// a call that failed. The plugin's own refusal is no error yet: who may be told of it is the next step's to judge.
pub(crate) async fn route(
    request: &RepositoryRequest<'_>,
    known: Option<&Arc<Intent>>,
) -> Result<Routed, HttpError> {
    if let Some(intent) = known {
        return Ok(Ok(Arc::clone(intent)));
    }
    let kind = match &request.repository {
        Some(NamedRepository::Undisclosed { intent, .. }) => return Ok(Ok(Arc::clone(intent))),
        Some(NamedRepository::Found(row)) => row.kind.as_str(),
        // So that the plugin judges the names in the path.
        Some(NamedRepository::Missing(_)) => UNDISCLOSED_KIND,
        None => "",
    };
    Ok(ask_plugin(&request.plugin, kind, &request.head).await?.map(Arc::new))
}

/// Calls the plugin's `route`. The outer error is a call that failed, the inner one the plugin's own refusal.
pub(crate) async fn ask_plugin(
    plugin: &Plugin,
    kind: &str,
    head: &Arc<RequestHead>,
) -> Result<Result<Intent, HttpError>, HttpError> {
    let routed =
        Box::pin(plugin.route(kind, head)).await.map_err(|error| failed(plugin, "route", head, error))?;
    Ok(routed.map_err(HttpError::from))
}
