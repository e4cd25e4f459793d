//! Recorded calls of plugins, for who looks after the server: they show what a repository holds and who asks for it. All of it needs
//! manage-server, and is of the actor's own organization.

use packhouse_app::recordings;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecordingSet, RecordingId, RecordingRow, RecordingSet,
    RecordingSetId, RepositoryId,
};
use packhouse_wire::catalogue;

use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;

/// What shall be recorded.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whose calls: the id of a repository.
    pub repository: String,
    /// So many at most.
    pub count: u32,
    /// Only calls that fail: the last ones are kept.
    pub only_failures: bool,
}

/// What is found by an id.
#[derive(Debug)]
pub enum Found {
    /// The file of a recording.
    File(Vec<u8>),
    /// A set, with the ids of what it holds, the newest first.
    Set(RecordingSet, Vec<RecordingId>),
}

/// Wants calls of a repository of this format recorded, on every server. 400 for a number of calls that is none; 404 for a repository that is
/// not there or of another format; 409 `too_many_recordings`.
pub async fn create(actor: &Actor, format: &str, wanted: Wanted) -> Result<RecordingSet, ApiError> {
    actor.needs(ManageServer)?;
    let not_found = || ApiError::from(&catalogue::NOT_FOUND);
    let Wanted { repository, count, only_failures } = wanted;
    if count == 0 || count > MAX_RECORDINGS {
        return Err(ApiError::invalid(&format!("`count` is a whole number from 1 to {MAX_RECORDINGS}.")));
    }
    let id: RepositoryId = repository.parse().map_err(|_| not_found())?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    let row = row.filter(|row| row.format == format).ok_or_else(not_found)?;
    let new = NewRecordingSet {
        organization: actor.organization(),
        format: row.format,
        repository: row.id,
        wanted: count,
        only_failures,
        created_by: actor.member().email.clone(),
    };
    let event = actor.event("record_plugin_calls", &row.name);
    let made = actor.app.store.create_recording_set(new, Some(event)).await?;
    let most = MAX_RECORDING_SETS.to_string();
    let made = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RECORDINGS, &most))?;
    arm(actor).await;
    Ok(made)
}

/// A page of the recordings of a format's repositories, the newest first; of one set where one is named.
pub async fn list(
    actor: &Actor,
    format: &str,
    set: Option<RecordingSetId>,
    page: PageRequest<RecordingId>,
) -> Result<Listed<RecordingRow>, ApiError> {
    actor.needs(ManageServer)?;
    let further = page.one_further();
    let store = &actor.app.store;
    let rows = store.recordings(actor.organization(), format, set, page.after, further).await?;
    Ok(page.cut(rows))
}

/// What has this id: the file of a recording, which is audited, or a set. 404 where nothing has.
pub async fn find(actor: &Actor, format: &str, id: &str) -> Result<Found, ApiError> {
    actor.needs(ManageServer)?;
    let not_found = || ApiError::from(&catalogue::NOT_FOUND);
    let (store, organization) = (&actor.app.store, actor.organization());
    let id: RecordingId = id.parse().map_err(|_| not_found())?;
    if let Some(content) = store.recording(organization, format, id).await? {
        let event = actor.event("read_plugin_recording", format!("{format} {id}"));
        store.audit(event).await?;
        let file = recordings::unpack(&content);
        return file.map(Found::File).map_err(|error| ApiError::Internal(error.into()));
    }
    let set = store.recording_set(organization, format, RecordingSetId(id.0)).await?;
    let set = set.ok_or_else(not_found)?;
    let rows = store.recordings(organization, format, Some(set.id), None, MAX_RECORDINGS).await?;
    Ok(Found::Set(set, rows.into_iter().map(|row| row.id).collect()))
}

/// Removes a recording, or a set with all that it holds, which is not recorded any more then. 404 where there is neither.
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

/// Has this server follow a change at once. Where it cannot, it finds the change by itself soon, as other servers do.
async fn arm(actor: &Actor) {
    if let Err(error) = recordings::arm(&actor.app).await {
        tracing::warn!(%error, "what is to be recorded of plugins could not be read; the next look will do");
    }
}
