//! Recorded calls of plugins, for the operators of the server. They contain content of the
//! repository and the callers. All operations need manage-server, and concern only the actor's own
//! organization.

use packhouse_app::recordings;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecordingSet, RecordingId, RecordingRow, RecordingSet,
    RecordingSetId, RepositoryId,
};
use packhouse_wire::catalogue;

use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;

/// A request to record calls of a plugin.
#[derive(Clone, Debug)]
pub struct RecordingRequest {
    /// Id of the repository whose calls are recorded.
    pub repository: String,
    pub count: u32,
    /// True if only failing calls are recorded; then the latest ones are stored.
    pub only_failures: bool,
}

/// Recording or set with an id.
#[derive(Debug)]
pub enum FoundRecording {
    File(Vec<u8>),
    /// Set, with the ids of its recordings, newest first.
    Set(RecordingSet, Vec<RecordingId>),
}

/// Starts recording calls for a repository of this format, on every server. 400 if `count` is out
/// of range; 404 if the repository does not exist or has another format; 409 `too_many_recordings`.
pub async fn create(
    actor: &Actor,
    format: &str,
    request: RecordingRequest,
) -> Result<RecordingSet, ApiError> {
    actor.needs(ManageServer)?;
    let not_found = || ApiError::from(&catalogue::NOT_FOUND);
    let RecordingRequest { repository, count, only_failures } = request;
    if count == 0 || count > MAX_RECORDINGS {
        return Err(ApiError::invalid(&format!("`count` must be an integer from 1 to {MAX_RECORDINGS}.")));
    }
    let id: RepositoryId = repository.parse().map_err(|_| not_found())?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    let row = row.filter(|row| row.format == format).ok_or_else(not_found)?;
    let new = NewRecordingSet {
        organization: actor.organization(),
        format: row.format,
        repository: row.id,
        max_recordings: count,
        only_failures,
        created_by: actor.name().to_owned(),
    };
    let event = actor.event("record_plugin_calls", &row.name);
    let made = actor.app.store.create_recording_set(new, Some(event)).await?;
    let most = MAX_RECORDING_SETS.to_string();
    let made = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RECORDINGS, &most))?;
    arm(actor).await;
    Ok(made)
}

/// Returns a page of the recordings of a format's repositories, newest first; if `set` is given,
/// only those of that set.
pub async fn list(
    actor: &Actor,
    format: &str,
    set: Option<RecordingSetId>,
    page: PageRequest<RecordingId>,
) -> Result<RowPage<RecordingRow>, ApiError> {
    actor.needs(ManageServer)?;
    let further = page.one_further();
    let store = &actor.app.store;
    let rows = store.recordings(actor.organization(), format, set, page.after, further).await?;
    Ok(page.cut(rows))
}

/// Finds a recording or a set. Access to a recording is audited. 404 if neither exists.
pub async fn find(actor: &Actor, format: &str, id: &str) -> Result<FoundRecording, ApiError> {
    actor.needs(ManageServer)?;
    let not_found = || ApiError::from(&catalogue::NOT_FOUND);
    let (store, organization) = (&actor.app.store, actor.organization());
    let id: RecordingId = id.parse().map_err(|_| not_found())?;
    if let Some(content) = store.recording(organization, format, id).await? {
        let event = actor.event("read_plugin_recording", format!("{format} {id}"));
        store.audit(event).await?;
        let file = recordings::unpack(&content);
        return file.map(FoundRecording::File).map_err(|error| ApiError::Internal(error.into()));
    }
    let set = store.recording_set(organization, format, RecordingSetId(id.0)).await?;
    let set = set.ok_or_else(not_found)?;
    let rows = store.recordings(organization, format, Some(set.id), None, MAX_RECORDINGS).await?;
    Ok(FoundRecording::Set(set, rows.into_iter().map(|row| row.id).collect()))
}

/// Deletes a recording, or a set with its recordings, which stops recording. 404 if neither exists.
pub async fn delete(actor: &Actor, format: &str, id: &str) -> Result<(), ApiError> {
    actor.needs(ManageServer)?;
    let not_found = || ApiError::from(&catalogue::NOT_FOUND);
    let number: RecordingId = id.parse().map_err(|_| not_found())?;
    let event = actor.event("delete_plugin_recording", format!("{format} {id}"));
    let store = &actor.app.store;
    if !store.delete_recordings(actor.organization(), format, number.0, Some(event)).await? {
        return Err(not_found());
    }
    arm(actor).await;
    Ok(())
}

/// Applies a change on this server at once. If that fails, the server notices the change soon, as
/// other servers do.
async fn arm(actor: &Actor) {
    if let Err(error) = recordings::arm(&actor.app).await {
        tracing::warn!(%error, "could not read which plugin calls to record; will retry");
    }
}
