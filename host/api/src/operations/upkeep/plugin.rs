//! Changes that a repository's plugin makes by the rules of its format.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_config::repository_settings::{trash_days, view};
use packhouse_runtime::{Action, Call as PluginCall, CallError, Failure, Plugin, RequestHead, VersionState};
use packhouse_store::{AuditEvent, RepositoryRow, TrashId};
use packhouse_wire::catalogue::{self, Code};

use crate::error::ApiError;
use crate::operations::loaded;

/// Returns the repository's plugin, if it can change versions; otherwise 405 `not_supported`.
pub(super) fn upkeep_plugin(app: &App, repository: &RepositoryRow) -> Result<Arc<Plugin>, ApiError> {
    let plugin = loaded::plugin_of(app, repository)?.filter(|plugin| plugin.has_upkeep());
    plugin.ok_or_else(|| ApiError::from(&catalogue::NOT_SUPPORTED))
}

/// Deletes one version of a package: into the repository's trash, if it has one.
pub(super) async fn delete_one(
    app: &App,
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: VersionRef<'_>,
) -> Result<(), ApiError> {
    let days = trash_days(&repository.settings);
    let VersionRef { package, version } = version;
    if days == 0 {
        let call = plugin_call(repository, plugin, event);
        return plugin_outcome(plugin.delete_version(call, package, version).await);
    }
    let entry = app.store.begin_trash(repository.id, package, version, &event.actor, days).await?;
    let call = PluginCall { trash: Some(entry), ..plugin_call(repository, plugin, event) };
    let deleted = plugin.delete_version(call, package, version).await;
    // After a failure the entry stays open, and the next attempt continues with it.
    if matches!(deleted, Ok(Ok(()))) {
        app.store.end_trash(entry).await?;
    }
    plugin_outcome(deleted)
}

/// Deletes one version into an open trash entry, or permanently without one. The entry stays open.
pub(in crate::operations) async fn delete_into(
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: VersionRef<'_>,
    entry: Option<TrashId>,
) -> Result<(), ApiError> {
    let call = PluginCall { trash: entry, ..plugin_call(repository, plugin, event) };
    plugin_outcome(plugin.delete_version(call, version.package, version.version).await)
}

/// Sets the state of one version of a package.
pub(super) async fn mark_one(
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: VersionRef<'_>,
    state: VersionState,
) -> Result<(), ApiError> {
    let call = plugin_call(repository, plugin, event);
    plugin_outcome(plugin.mark_version(call, version.package, version.version, state).await)
}

/// Version with the name of its package.
#[derive(Clone, Copy, Debug)]
pub(in crate::operations) struct VersionRef<'a> {
    pub(in crate::operations) package: &'a str,
    pub(in crate::operations) version: &'a str,
}

fn plugin_call(repository: &RepositoryRow, plugin: &Plugin, event: AuditEvent) -> PluginCall {
    let head = RequestHead { request_id: event.request_id.as_str().into(), ..RequestHead::default() };
    PluginCall {
        target: Some(view(repository, plugin.description())),
        audit: Some(event),
        ..PluginCall::new(Arc::new(head), Action::Delete)
    }
}

/// Converts a plugin's refusal: the status selects the error code, and the plugin's message is
/// used.
pub(in crate::operations) fn plugin_outcome(
    outcome: Result<Result<(), Failure>, CallError>,
) -> Result<(), ApiError> {
    let failure = match outcome {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(failure)) => failure,
        Err(CallError::Store(error)) => return Err(ApiError::from(error)),
        Err(CallError::NotOffered(_)) => return Err(ApiError::from(&catalogue::NOT_SUPPORTED)),
        Err(CallError::Busy(_)) => return Err(ApiError::from(&catalogue::FORMAT_BUSY)),
        Err(error) => return Err(ApiError::Internal(error.into())),
    };
    let code: &'static Code = match failure.status {
        400 => &catalogue::INVALID_REQUEST,
        404 => &catalogue::NOT_FOUND,
        405 => &catalogue::NOT_SUPPORTED,
        409 => &catalogue::CONFLICT,
        503 => &catalogue::FORMAT_BUSY,
        _ => &catalogue::INTERNAL,
    };
    let message = failure.problems.into_iter().next().map(|problem| problem.message);
    let message = message.filter(|text| !text.is_empty()).unwrap_or_else(|| code.sentence.to_owned());
    Err(ApiError::Refused { code, message, retry_after: None })
}
