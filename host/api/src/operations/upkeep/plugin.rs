//! What the plugin of a repository does to what is there, by its format's own rules.

use std::sync::Arc;

use packhouse_app::App;
use packhouse_config::repository_settings::{trash_days, view};
use packhouse_runtime::{Action, Call as PluginCall, CallError, Failure, Plugin, RequestHead, VersionState};
use packhouse_store::{AuditEvent, RepositoryRow, TrashId};
use packhouse_wire::catalogue::{self, Code};

use crate::error::ApiError;
use crate::operations::loaded;

/// The repository's plugin, where it offers to change what is there: 405 `not_supported` otherwise.
pub(super) fn offering(app: &App, repository: &RepositoryRow) -> Result<Arc<Plugin>, ApiError> {
    let plugin = loaded::plugin_of(app, repository)?.filter(|plugin| plugin.has_upkeep());
    plugin.ok_or_else(|| ApiError::from(&catalogue::NOT_SUPPORTED))
}

/// Deletes one version of a package: into the repository's trash, where it has one.
pub(super) async fn delete_one(
    app: &App,
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: Named<'_>,
) -> Result<(), ApiError> {
    let days = trash_days(&repository.settings);
    let Named { package, version } = version;
    if days == 0 {
        let call = plugin_call(repository, plugin, event);
        return done(plugin.delete_version(call, package, version).await);
    }
    let entry = app.store.begin_trash(repository.id, package, version, &event.actor, days).await?;
    let call = PluginCall { trash: Some(entry), ..plugin_call(repository, plugin, event) };
    let deleted = plugin.delete_version(call, package, version).await;
    // One that failed half-way is left open: it goes on with the same entry.
    if matches!(deleted, Ok(Ok(()))) {
        app.store.end_trash(entry).await?;
    }
    done(deleted)
}

/// Deletes one version into an entry of the trash that has begun, or for good without one. The entry stays open.
pub(in crate::operations) async fn delete_into(
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: Named<'_>,
    entry: Option<TrashId>,
) -> Result<(), ApiError> {
    let call = PluginCall { trash: entry, ..plugin_call(repository, plugin, event) };
    done(plugin.delete_version(call, version.package, version.version).await)
}

/// Sets the state of one version of a package.
pub(super) async fn mark_one(
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    version: Named<'_>,
    state: VersionState,
) -> Result<(), ApiError> {
    let call = plugin_call(repository, plugin, event);
    done(plugin.mark_version(call, version.package, version.version, state).await)
}

/// A version by the names of its package and itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::operations) struct Named<'a> {
    /// The package.
    pub(in crate::operations) package: &'a str,
    /// The version.
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

/// A plugin's refusal as the API says it: by its code where the catalogue has that, else by its status, in its own words.
pub(in crate::operations) fn done(outcome: Result<Result<(), Failure>, CallError>) -> Result<(), ApiError> {
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
