//! Deleting packages of many versions. What is left to be deleted is a row of the database, so it goes on after the caller is gone,
//! and after the server is: whichever server finds a row that nobody is at takes it.

use std::sync::Arc;
use std::time::Duration;

use packhouse_runtime::Plugin;
use packhouse_store::{AuditEvent, Deletion, RepositoryRow};

use super::plugin::{Named, delete_one, offering};
use crate::error::ApiError;
use packhouse_app::App;
use packhouse_wire::catalogue;

/// After how many versions it is noted which are left.
const PIECE: usize = 50;
/// How often a deletion is looked for that nobody is at.
const LOOKED_FOR: Duration = Duration::from_secs(10);
/// How long one is left alone that failed.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Deletes the versions of a deletion that is the caller's; false when the server stops first.
async fn work(app: &App, deletion: &mut Deletion) -> Result<bool, ApiError> {
    let found = app.store.find_repository(deletion.event.organization, deletion.repository).await?;
    let Some(repository) = found else { return finish(app, deletion).await };
    let plugin = offering(app, &repository)?;
    while !deletion.versions.is_empty() {
        if app.stop.is_cancelled() {
            app.store.leave_deletion(deletion.id, Duration::ZERO).await?;
            return Ok(false);
        }
        let done = piece(app, &repository, &plugin, deletion).await;
        let left = deletion.versions.split_off(*done.as_ref().unwrap_or(&0));
        deletion.versions = left;
        done?;
        app.store.go_on_with_deletion(deletion.id, &deletion.versions).await?;
    }
    Ok(true)
}

/// How many versions are gone.
async fn piece(
    app: &App,
    repository: &RepositoryRow,
    plugin: &Arc<Plugin>,
    deletion: &Deletion,
) -> Result<usize, ApiError> {
    let mut done = 0;
    for version in deletion.versions.iter().take(PIECE) {
        let subject = format!("{}/{} {version}", repository.name, deletion.name);
        let event = AuditEvent { subject, ..deletion.event.clone() };
        let named = Named { package: &deletion.name, version };
        match delete_one(app, repository, plugin, event, named).await {
            // It was gone already: when this was interrupted, or by somebody else's hand.
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
    app.store.go_on_with_deletion(deletion.id, &[]).await?;
    Ok(true)
}

/// Works on a deletion to its end; false when the server stops first. One that fails is left for a while; one that the format
/// refuses is given up.
pub(super) async fn carry_out(app: &App, mut deletion: Deletion) -> Result<bool, ApiError> {
    let worked = work(app, &mut deletion).await;
    let error = match worked {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    let left = deletion.versions.len();
    tracing::warn!(package = deletion.name, left, "a package could not be deleted whole: {error:?}");
    let refused = matches!(&error, ApiError::Refused { code, .. } if matches!(code.status, 400 | 405));
    let noted = if refused {
        app.store.go_on_with_deletion(deletion.id, &[]).await
    } else {
        app.store.leave_deletion(deletion.id, AGAIN_AFTER).await
    };
    if let Err(problem) = noted {
        tracing::warn!(%problem, "a deletion is taken up again once its claim has ended");
    }
    Err(error)
}

/// Takes up deletions that nobody is at, until the stop.
pub async fn resume(app: Arc<App>) {
    loop {
        match app.store.claim_deletion().await {
            Ok(Some(deletion)) => {
                let _ = carry_out(&app, deletion).await;
                continue;
            }
            Ok(None) => {}
            Err(problem) => tracing::debug!(%problem, "deletions could not be looked for"),
        }
        if tokio::time::timeout(LOOKED_FOR, app.stop.cancelled()).await.is_ok() {
            return;
        }
    }
}
