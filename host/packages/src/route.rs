//! The step route: the plugin states what the request would do. The plugin sees only the request
//! here.

use std::sync::Arc;

use packhouse_runtime::{Intent, Plugin, RequestHead, RoutedInstance};

use crate::error_response::HttpError;
use crate::plugin_failure::failed;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};

/// A plugin's answer to `route`: the intent, or the plugin's own refusal.
pub(crate) type RouteIntent = Result<Arc<Intent>, HttpError>;

/// Result of the step route.
pub(crate) struct Routed<'a> {
    /// The plugin's answer, from a call or from the cache.
    pub route_intent: RouteIntent,
    /// The instance that ran `route`, if it can also run `handle`.
    pub instance: Option<RoutedInstance<'a>>,
}

/// Calls the plugin's `route`, unless a cached response or an open request has already provided the
/// intent. Fails only if the call fails. A refusal by the plugin is not an error yet, because the
/// next step decides who may see it.
pub(crate) async fn route<'a>(
    request: &'a RepositoryRequest<'_>,
    known: Option<&Arc<Intent>>,
) -> Result<Routed<'a>, HttpError> {
    if let Some(intent) = known {
        log_action(request, intent);
        return Ok(Routed { route_intent: Ok(Arc::clone(intent)), instance: None });
    }
    let kind = match &request.repository {
        Some(NamedRepository::Undisclosed { intent, .. }) => {
            return Ok(Routed { route_intent: Ok(Arc::clone(intent)), instance: None });
        }
        Some(NamedRepository::Found(row)) => row.kind.as_str(),
        // Pass a kind, so that the plugin checks the names in the path.
        Some(NamedRepository::Missing(_)) => UNDISCLOSED_KIND,
        None => "",
    };
    // Boxed, because the state is large and cached responses do not come here.
    let routed = Box::pin(request.plugin.route_to_handle(kind, &request.head)).await;
    match routed.map_err(|error| failed(&request.plugin, "route", &request.head, error))? {
        Ok(routed) => {
            log_action(request, &routed.intent);
            Ok(Routed { route_intent: Ok(Arc::new(routed.intent)), instance: routed.instance })
        }
        Err(refused) => Ok(Routed { route_intent: Err(HttpError::from(refused)), instance: None }),
    }
}

/// Logs the action for the plugin's author. Does not log the path, because it may contain a
/// credential.
fn log_action(request: &RepositoryRequest<'_>, intent: &Intent) {
    tracing::debug!(
        target: "packhouse::intent",
        request_id = &*request.head.request_id,
        action = ?intent.action,
        "intended action"
    );
}

/// Calls the plugin's `route`. The outer error means that the call failed; the inner error is the
/// plugin's own refusal.
pub(crate) async fn call_route(
    plugin: &Plugin,
    kind: &str,
    head: &Arc<RequestHead>,
) -> Result<Result<Intent, HttpError>, HttpError> {
    let routed =
        Box::pin(plugin.route(kind, head)).await.map_err(|error| failed(plugin, "route", head, error))?;
    Ok(routed.map_err(HttpError::from))
}
