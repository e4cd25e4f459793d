//! Trying a component beside what its format runs. All of it needs manage-server, and changes go to the audit log.

use packhouse_app::plugins::MAX_FAILURES;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_runtime::TrialMode;
use packhouse_store::{NewTrial, RecordingId, RepositoryId, TrialRow};

use super::plugins::refusal;
use super::{Actor, loaded};
use crate::error::ApiError;

/// What shall be tried, as somebody asked for it.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The component, as `sha256:` and hex.
    pub digest: String,
    /// `shadow` or `canary`.
    pub mode: String,
    /// Of the actor's organization; none: every repository of the format.
    pub repositories: Option<Vec<RepositoryId>>,
    /// The share of clients.
    pub percent: Option<u32>,
    /// Of a canary: so many calls may fail.
    pub max_failures: Option<u64>,
    /// Of a canary: whether it may ask more than what runs.
    pub accept_changes: bool,
}

/// A trial with what was recorded.
#[derive(Clone, Debug)]
pub struct Trialed {
    /// The trial.
    pub row: TrialRow,
    /// Of what was answered otherwise, the newest first.
    pub different: Vec<RecordingId>,
    /// Of what was not answered, the newest first.
    pub failed: Vec<RecordingId>,
}

/// Tries a component, in place of what was tried before. 400 for what is no trial, 404 where there is no such component or repository of
/// the format, 409 `conflict` where the format runs nothing, 409 `capabilities_changed` for a canary that asks more, 422
/// `plugin_refused` where it is of another format or cannot be run here.
pub async fn begin(actor: &Actor, format: &str, request: TrialRequest) -> Result<Trialed, ApiError> {
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let TrialRequest { digest, mode, repositories, percent, max_failures, accept_changes } = request;
    let Some(known) = TrialMode::of(&mode) else {
        return Err(ApiError::invalid("`mode` is `shadow` or `canary`."));
    };
    let percent = percent.unwrap_or(100);
    if !(1..=100).contains(&percent) {
        return Err(ApiError::invalid("`percent` is a whole number from 1 to 100."));
    }
    let max_failures = match (known, max_failures) {
        (TrialMode::Canary, most) => Some(most.unwrap_or(MAX_FAILURES)),
        (TrialMode::Shadow, None) => None,
        (TrialMode::Shadow, Some(_)) => {
            return Err(ApiError::invalid("`max_failures` is a canary's: a shadow harms nobody."));
        }
    };
    let new = NewTrial {
        format: format.to_owned(),
        digest,
        mode,
        organization: actor.organization(),
        repositories,
        percent,
        max_failures,
        started_by: actor.member().email.clone(),
    };
    let event = |format: &str| Some(actor.event("try_plugin", format));
    let row = actor.app.try_plugin(new, accept_changes, event).await.map_err(refusal)?;
    shown(actor, row).await
}

/// The trial of a format. 404 where there is none.
pub async fn find(actor: &Actor, format: &str) -> Result<Trialed, ApiError> {
    actor.needs(ManageServer)?;
    let row = actor.app.find_trial(format).await.map_err(refusal)?;
    shown(actor, row).await
}

/// Takes the trial of a format back. 404 where there is none.
pub async fn end(actor: &Actor, format: &str) -> Result<(), ApiError> {
    actor.needs(ManageServer)?;
    let event = actor.event("end_plugin_trial", format);
    actor.app.end_trial(format, Some(event)).await.map_err(refusal)
}

async fn shown(actor: &Actor, row: TrialRow) -> Result<Trialed, ApiError> {
    let different = actor.app.store.trial_recordings(row.id, false).await?;
    let failed = actor.app.store.trial_recordings(row.id, true).await?;
    Ok(Trialed { row, different, failed })
}
