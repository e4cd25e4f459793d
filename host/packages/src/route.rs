//! The step route: the plugin says what the request would do. From there it can reach nothing.

use std::sync::Arc;
use std::time::Instant;

use packhouse_runtime::{Intent, Plugin, RequestHead, RoutedInstance};

use crate::error_response::HttpError;
use crate::plugin_failure::failed;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};

/// What a plugin says of a request: what it would do, or the plugin's own refusal.
pub(crate) type Told = Result<Arc<Intent>, HttpError>;

/// What came of the step.
pub(crate) struct Routed<'a> {
    /// What the plugin says, now or before.
    pub told: Told,
    /// The instance that it was asked in, where the step handle can go on there.
    pub instance: Option<RoutedInstance<'a>>,
}

/// Asks the plugin, unless the intent is known: with a cached response, or from what a format opens to anybody. An error is
/// a call that failed. The plugin's own refusal is no error yet: who may be told of it is the next step's to judge.
pub(crate) async fn route<'a>(
    request: &'a RepositoryRequest<'_>,
    known: Option<&Arc<Intent>>,
) -> Result<Routed<'a>, HttpError> {
    if let Some(intent) = known {
        tell(request, intent);
        return Ok(Routed { told: Ok(Arc::clone(intent)), instance: None });
    }
    let kind = match &request.repository {
        Some(NamedRepository::Undisclosed { intent, .. }) => {
            return Ok(Routed { told: Ok(Arc::clone(intent)), instance: None });
        }
        Some(NamedRepository::Found(row)) => row.kind.as_str(),
        // So that the plugin judges the names in the path.
        Some(NamedRepository::Missing(_)) => UNDISCLOSED_KIND,
        None => "",
    };
    // Its state is large, and responses from the cache do not come here.
    let since = Instant::now();
    let routed = Box::pin(request.plugin.route_to_handle(kind, &request.head)).await;
    if let Some(on_trial) = &request.on_trial {
        match &routed {
            Ok(Ok(_)) => on_trial.goes_on(since.elapsed()),
            Ok(Err(refused)) => on_trial.refused(&request.tried(), Ok(refused), since.elapsed()),
            Err(error) => on_trial.refused(&request.tried(), Err(error), since.elapsed()),
        }
    }
    match routed.map_err(|error| failed(&request.plugin, "route", &request.head, error))? {
        Ok(routed) => {
            tell(request, &routed.intent);
            Ok(Routed { told: Ok(Arc::new(routed.intent)), instance: routed.instance })
        }
        Err(refused) => Ok(Routed { told: Err(HttpError::from(refused)), instance: None }),
    }
}

/// What the request would do, for whoever writes the plugin. Not to what: that may be what a sign-in is fetched with.
fn tell(request: &RepositoryRequest<'_>, intent: &Intent) {
    tracing::debug!(
        target: "packhouse::intent",
        request_id = &*request.head.request_id,
        action = ?intent.action,
        "what it would do"
    );
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
