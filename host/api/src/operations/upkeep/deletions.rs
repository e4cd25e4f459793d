//! Deletions of packages with many versions. A database row lists the remaining versions, so a
//! deletion continues after the caller or the server has gone: any server resumes a row that no
//! server works on.

use std::sync::Arc;
use std::time::Duration;

use packhouse_runtime::Plugin;
use packhouse_store::{AuditEvent, Deletion, RepositoryRow};

use super::plugin::{VersionRef, delete_one, upkeep_plugin};
use crate::error::ApiError;
use packhouse_app::App;
use packhouse_app::jobs::{Job, JobResult, Next};
use packhouse_wire::catalogue;

/// Number of versions after which the remaining ones are recorded.
const BATCH: usize = 50;
/// Time between two looks for abandoned deletions.
const INTERVAL: Duration = Duration::from_secs(10);
/// Pause after a failed deletion.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Deletes the versions of a claimed deletion. Returns false if the server stops first.
async fn work(app: &App, deletion: &mut Deletion) -> Result<bool, ApiError> {
    let found = app.store.find_repository(deletion.event.organization, deletion.repository).await?;
    let Some(repository) = found else { return finish(app, deletion).await };
    let plugin = upkeep_plugin(app, &repository)?;
    while !deletion.versions.is_empty() {
        if app.stop.is_cancelled() {
            app.store.leave_deletion(deletion.id, Duration::ZERO).await?;
            return Ok(false);
        }
        let done = delete_batch(app, &repository, &plugin, deletion).await;
        let left = deletion.versions.split_off(*done.as_ref().unwrap_or(&0));
        deletion.versions = left;
        done?;
        app.store.continue_deletion(deletion.id, &deletion.versions).await?;
    }
    Ok(true)
}

/// Deletes the next versions. Returns the number of deleted ones.
async fn delete_batch(
    app: &App,
    repository: &RepositoryRow,
    plugin: &Arc<Plugin>,
    deletion: &Deletion,
) -> Result<usize, ApiError> {
    let mut done = 0;
    for version in deletion.versions.iter().take(BATCH) {
        let subject = format!("{}/{} {version}", repository.name, deletion.name);
        let event = AuditEvent { subject, ..deletion.event.clone() };
        let named = VersionRef { package: &deletion.name, version };
        match delete_one(app, repository, plugin, event, named).await {
            // It was deleted already, before an interruption or by another caller.
            Err(ApiError::Refused { code, .. }) if std::ptr::eq(code, &catalogue::NOT_FOUND) => {}
            other => other?,
        }
        done += 1;
        if app.stop.is_cancelled() {
            break;
        }
    }
    Ok(done)
}

async fn finish(app: &App, deletion: &Deletion) -> Result<bool, ApiError> {
    app.store.continue_deletion(deletion.id, &[]).await?;
    Ok(true)
}

/// Works on a deletion to its end. Returns false if the server stops first. A failed deletion is
/// retried later; one that the format refuses is given up.
pub(super) async fn carry_out(app: &App, mut deletion: Deletion) -> Result<bool, ApiError> {
    let worked = work(app, &mut deletion).await;
    let error = match worked {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    let left = deletion.versions.len();
    tracing::warn!(
        package = deletion.name,
        left,
        "deleting a package failed; some versions remain: {error:?}"
    );
    let refused = matches!(&error, ApiError::Refused { code, .. } if matches!(code.status, 400 | 405));
    let recorded = if refused {
        app.store.continue_deletion(deletion.id, &[]).await
    } else {
        app.store.leave_deletion(deletion.id, RETRY_AFTER).await
    };
    if let Err(problem) = recorded {
        tracing::warn!(%problem, "a deletion continues when its claim has ended");
    }
    Err(error)
}

/// Creates the job that continues deletions which a stopped server left unfinished.
pub fn job(app: &Arc<App>) -> Job {
    // The plugin of a format deletes its versions.
    Job::new(app, "continue-deletions", INTERVAL, continue_all).with_plugins()
}

async fn continue_all(app: Arc<App>) -> JobResult {
    while !app.stop.is_cancelled() {
        let Some(deletion) = app.store.claim_deletion().await? else { break };
        // A failure is recorded with the deletion, which another run continues.
        let _ = carry_out(&app, deletion).await;
    }
    Ok(Next::AfterPeriod)
}
