//! Recordings of plugin calls. This module connects the recorder of this process with the store. It
//! tells the recorder which calls a user of any server wants recorded, and stores finished
//! recordings.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use packhouse_runtime::{Armed, Finished, Recorder};
use packhouse_store::{NewRecording, RecordingSetId, StoreError};

use crate::App;
use crate::boxed;
use crate::jobs::{Job, Next};

/// Interval of the search for recordings that users requested.
const LOOK: Duration = Duration::from_secs(2);
/// Interval at which expired recordings are deleted.
const FORGET: Duration = Duration::from_secs(60);
/// Maximum size of a decompressed recording, in bytes.
const MOST: u64 = 64 << 20;

/// Tells the recorder which recordings the store requests. If the store is unavailable, the
/// recorder keeps its previous state.
#[boxed]
pub async fn arm(app: &App) -> Result<(), StoreError> {
    let sets = app.store.armed_recording_sets().await?;
    let armed = sets.into_iter().map(|set| Armed {
        set: set.id.0,
        repository: set.repository,
        count: set.max_recordings,
        only_failures: set.only_failures,
    });
    recorder(app).arm(armed.collect());
    Ok(())
}

/// Stores finished recordings of calls on this server, until the server stops.
#[boxed]
pub async fn keep_finished(app: Arc<App>) {
    recorder(&app).hide(packhouse_identity::SECRET_PREFIXES.map(str::to_owned).into());
    loop {
        tokio::select! {
            () = app.stop.cancelled() => return,
            Some(finished) = recorder(&app).finished() => keep(&app, finished).await,
        }
    }
}

/// Creates two jobs: one updates which calls to record, the other deletes expired recordings.
pub fn jobs(app: &Arc<App>) -> [Job; 2] {
    let follow = Job::new(app, "follow-recording-requests", LOOK, |app| async move {
        arm(&app).await?;
        Ok(Next::AfterPeriod)
    });
    let forget = Job::new(app, "delete-expired-recordings", FORGET, |app| async move {
        forget(&app).await?;
        Ok(Next::AfterPeriod)
    });
    [follow, forget]
}

fn recorder(app: &App) -> &Recorder {
    app.runtime.recorder()
}

async fn forget(app: &App) -> Result<(), StoreError> {
    let forgotten = app.store.forget_recordings().await?;
    if forgotten > 0 {
        tracing::info!(forgotten, "deleted expired recordings of plugin and policy calls");
    }
    Ok(())
}

/// Stores a recording in each set to which it belongs.
async fn keep(app: &App, finished: Finished) {
    let sets = finished.sets.clone();
    let Ok(made) = tokio::task::spawn_blocking(move || pack(finished)).await else { return };
    let new = match made {
        Ok(new) => new,
        Err(error) => {
            tracing::warn!(%error, "could not record a plugin call");
            return;
        }
    };
    for set in sets {
        if let Err(error) = app.store.keep_recording(RecordingSetId(set), new.clone()).await {
            tracing::warn!(%error, set, "could not store the recording of a plugin call");
        }
    }
}

/// Converts a recording to a compressed file without credentials. This takes some time for a large
/// recording.
pub fn pack(finished: Finished) -> io::Result<NewRecording> {
    let recording = finished.into_recording();
    let content = compress(recording.to_json().as_bytes())?;
    Ok(NewRecording {
        recorded_at: i64::try_from(recording.recorded_at).unwrap_or(i64::MAX),
        function: recording.function().to_owned(),
        outcome: recording.outcome().map(ToString::to_string).unwrap_or_default(),
        component: recording.component.clone(),
        is_cut: recording.cut.is_some(),
        content,
    })
}

/// Compresses a file, so that it can be stored.
pub(crate) fn compress(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(file)?;
    encoder.finish()
}

pub fn unpack(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    GzDecoder::new(content).take(MOST).read_to_end(&mut file)?;
    Ok(file)
}
