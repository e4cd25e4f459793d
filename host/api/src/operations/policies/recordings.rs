//! Recorded calls of a rule's component, for who looks after the rule: they show what was judged, who asked for it, and what was said.

use packhouse_app::recordings::unpack;
use packhouse_runtime::WantedFact;
use packhouse_store::{MAX_RECORDING_SETS, MAX_RECORDINGS, RecordingId, RecordingRow, RuleRecording};
use packhouse_wire::catalogue;

use super::{Rule, find, reach_of};
use crate::error::ApiError;
use crate::operations::repositories::may_read;
use crate::operations::retention::{Reach, reached};
use crate::operations::{Actor, Listed, PageRequest};

/// Has calls of the rule of this id recorded that fail or refuse: the last `count`, in place of what was recorded of it. 400 for a number
/// of calls that is none, 409 `too_many_recordings`.
pub async fn record(actor: &Actor, id: &str, count: u32) -> Result<RuleRecording, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    if count == 0 || count > MAX_RECORDINGS {
        return Err(ApiError::invalid(&format!("`count` is a whole number from 1 to {MAX_RECORDINGS}.")));
    }
    let event = actor.event("record_policy_calls", row.name);
    let (store, by) = (&actor.app.store, actor.member().email.clone());
    let made = store.record_rule(row.organization, row.id, count, by, Some(event)).await?;
    let most = MAX_RECORDING_SETS.to_string();
    made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RECORDINGS, &most))
}

/// That calls of the rule of this id are recorded, if they are.
pub async fn recording_of(actor: &Actor, id: &str) -> Result<Option<RuleRecording>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let all = actor.app.store.rules_that_record(row.organization).await?;
    Ok(all.into_iter().find(|one| one.rule == row.id))
}

/// A page of what was recorded of the rule of this id, the newest first.
pub async fn recordings(
    actor: &Actor,
    id: &str,
    page: PageRequest<RecordingId>,
) -> Result<Listed<RecordingRow>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let store = &actor.app.store;
    let rows = store.rule_recordings(row.organization, row.id, page.after, page.one_further()).await?;
    Ok(page.cut(rows))
}

/// The file of a recording, which is audited. It tells names of packages, and so is for who may read wherever the rule is about, and of a
/// component that is told the names in use, everywhere: 403 `repo_access_denied`.
pub async fn recording(actor: &Actor, id: &str, recording: &str) -> Result<Vec<u8>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let told_names = actor
        .app
        .policy_component(&row.text.component)
        .await?
        .map_or(true, |component| component.description().wants(WantedFact::Names));
    let reach = if told_names { Reach::All } else { reach_of(&row.text) };
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

/// Records no more of the rule of this id, and removes what was recorded of it. 404 where nothing was.
pub async fn stop_recording(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let event = actor.event("delete_policy_recordings", row.name);
    if actor.app.store.stop_recording_rule(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}
