//! The step check: asks the plugin whether the request can succeed, before the client sends the
//! body.

use std::sync::Arc;

use packhouse_runtime::{Call, Intent, Moved};
use packhouse_wire::incoming_body::{declared, expects_continue};

use crate::error_response::HttpError;
use crate::package_limits;
use crate::plugin_failure::failed;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;

/// Maximum declared length of a body that the host receives without calling `check`. For such a
/// small body, the decision of `handle` is early enough.
const UNCHECKED_BYTES: u64 = 64 * 1024;

/// Calls the plugin's `check` if the intent asks for it. Skips the call without a repository, and
/// for a small body that the client sends without waiting for the response.
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
    let packages = package_limits::bounds(request, intent);
    let of_request = Call::new(Arc::clone(&request.head), intent.action);
    let call = Call { target, others, moved, packages, ..of_request };
    let checked = Box::pin(request.plugin.check(call)).await;
    let checked = checked.map_err(|error| failed(&request.plugin, "check", &request.head, error))?;
    checked.map_err(HttpError::from)
}
