//! Recorded calls of a rule's component, for the managers of the rule. They contain the judged
//! facts, the caller, and the ruling.

use packhouse_app::recordings::unpack;
use packhouse_runtime::OptionalFact;
use packhouse_store::{MAX_RECORDING_SETS, MAX_RECORDINGS, RecordingId, RecordingRow, RuleRecording};
use packhouse_wire::catalogue;

use super::{Rule, find, reach_of};
use crate::error::ApiError;
use crate::operations::repositories::may_read;
use crate::operations::retention::{Reach, reached};
use crate::operations::{Actor, PageRequest, RowPage};

/// Starts recording the last `count` failing or refusing calls of this rule and discards earlier
/// recordings. 400 if `count` is out of range, 409 `too_many_recordings`.
pub async fn record(actor: &Actor, id: &str, count: u32) -> Result<RuleRecording, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    if count == 0 || count > MAX_RECORDINGS {
        return Err(ApiError::invalid(&format!("`count` must be an integer from 1 to {MAX_RECORDINGS}.")));
    }
    let event = actor.event("record_policy_calls", row.name);
    let (store, by) = (&actor.app.store, actor.name().to_owned());
    let made = store.record_rule(row.organization, row.id, count, by, Some(event)).await?;
    let most = MAX_RECORDING_SETS.to_string();
    made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RECORDINGS, &most))
}

/// Returns the running recording of a rule, if there is one.
pub async fn recording_of(actor: &Actor, id: &str) -> Result<Option<RuleRecording>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let all = actor.app.store.rules_that_record(row.organization).await?;
    Ok(all.into_iter().find(|one| one.rule == row.id))
}

/// Returns a page of a rule's recordings, newest first.
pub async fn recordings(
    actor: &Actor,
    id: &str,
    page: PageRequest<RecordingId>,
) -> Result<RowPage<RecordingRow>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let store = &actor.app.store;
    let rows = store.rule_recordings(row.organization, row.id, page.after, page.one_further()).await?;
    Ok(page.cut(rows))
}

/// Returns the file of a recording, and audits the access. The file contains package names, so it
/// needs read access to all repositories of the rule. If the component receives the names in use,
/// it needs read access to all repositories. 403 `repo_access_denied`.
pub async fn recording(actor: &Actor, id: &str, recording: &str) -> Result<Vec<u8>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let receives_names = actor
        .app
        .policy_component(&row.text.component)
        .await?
        .map_or(true, |component| component.description().wants(OptionalFact::Names));
    let reach = if receives_names { Reach::All } else { reach_of(&row.text) };
    let reached = reached(&actor.app, row.organization, &reach).await?;
    let may_read = reached.iter().all(|repository| may_read(actor, repository));
    actor.judge(may_read, &catalogue::REPO_ACCESS_DENIED)?;
    let recording: RecordingId = recording.parse().map_err(|_| &catalogue::NOT_FOUND)?;
    let store = &actor.app.store;
    let found = store.rule_recording(row.organization, row.id, recording).await?;
    let content = found.ok_or(&catalogue::NOT_FOUND)?;
    store.audit(actor.event("read_policy_recording", format!("{} {recording}", row.name))).await?;
    unpack(&content).map_err(|error| ApiError::Internal(error.into()))
}

/// Stops recording a rule and deletes its recordings. 404 if there was no recording.
pub async fn stop_recording(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let event = actor.event("delete_policy_recordings", row.name);
    if actor.app.store.stop_recording_rule(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}
