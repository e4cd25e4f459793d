//! The step check: the plugin says whether the request can succeed at all, before its body is asked for.

use std::sync::Arc;
use std::time::Instant;

use packhouse_runtime::{Call, Intent, Moved};
use packhouse_wire::incoming_body::{declared, expects_continue};

use crate::error_response::HttpError;
use crate::plugin_failure::failed;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;

/// A declared body up to so many bytes is received without asking the plugin first: `handle` decides anyway.
const UNCHECKED_BYTES: u64 = 64 * 1024;

/// Asks the plugin if the intent wants it, except for a small body that the client sends without waiting. Where there is no
/// repository there is nothing to look at.
pub(crate) async fn check(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    repositories: &SelectedRepositories,
    moved: Option<Moved>,
) -> Result<(), HttpError> {
    let headers = &request.parts.headers;
    let small = declared(headers).is_some_and(|length| length <= UNCHECKED_BYTES);
    if request.found().is_none() || !intent.check || (small && !expects_continue(headers)) {
        return Ok(());
    }
    let SelectedRepositories { target, others, .. } = repositories.clone();
    let call = Call { target, others, moved, ..Call::new(Arc::clone(&request.head), intent.action) };
    let since = Instant::now();
    let checked = Box::pin(request.plugin.check(call)).await;
    if let Some(on_trial) = &request.on_trial {
        match &checked {
            Ok(Ok(())) => on_trial.goes_on(since.elapsed()),
            Ok(Err(refused)) => on_trial.refused(&request.tried(), Ok(refused), since.elapsed()),
            Err(error) => on_trial.refused(&request.tried(), Err(error), since.elapsed()),
        }
    }
    let checked = checked.map_err(|error| failed(&request.plugin, "check", &request.head, error))?;
    checked.map_err(HttpError::from)
}
