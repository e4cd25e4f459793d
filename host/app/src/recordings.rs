//! Recorded calls of plugins between the recorder of this process and the store: what is armed there, on whichever server, is recorded here,
//! and what is recorded here is kept there.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use packhouse_runtime::{Armed, Finished, Recorder};
use packhouse_store::{NewRecording, RecordingSetId, StoreError};
use tokio::time::MissedTickBehavior;

use crate::App;
use crate::boxed;

/// How often it is looked what is armed.
const LOOK: Duration = Duration::from_secs(2);
/// After so many looks what is over is removed.
const LOOKS_TO_FORGET: u32 = 30;
/// Bytes of a file at most.
const MOST: u64 = 64 << 20;

/// Records what the store wants recorded, from now on. `Unavailable` when it does not answer: it stays as it was then.
#[boxed]
pub async fn arm(app: &App) -> Result<(), StoreError> {
    let sets = app.store.armed_recording_sets().await?;
    let armed = sets.into_iter().map(|set| Armed {
        set: set.id.0,
        repository: set.repository,
        count: set.wanted,
        only_failures: set.only_failures,
    });
    recorder(app).arm(armed.collect());
    Ok(())
}

/// Does all this until the stop.
#[boxed]
pub async fn run(app: Arc<App>) {
    recorder(&app).hide(packhouse_identity::SECRET_PREFIXES.map(str::to_owned).into());
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = 0_u32;
    loop {
        tokio::select! {
            () = app.stop.cancelled() => return,
            Some(finished) = recorder(&app).finished() => keep(&app, finished).await,
            _ = looks.tick() => {
                let done = if looked.is_multiple_of(LOOKS_TO_FORGET) { forget(&app).await } else { Ok(()) };
                looked = looked.wrapping_add(1);
                let armed = arm(&app).await;
                if let Err(error) = done.and(armed) {
                    tracing::debug!(%error, "what is to be recorded of plugins could not be read; the next time will do");
                }
            }
        }
    }
}

fn recorder(app: &App) -> &Recorder {
    app.runtime.recorder()
}

async fn forget(app: &App) -> Result<(), StoreError> {
    let forgotten = app.store.forget_recordings().await?;
    if forgotten > 0 {
        tracing::info!(forgotten, "recordings of calls of plugins and policies that were over are gone");
    }
    Ok(())
}

/// Keeps a recording in each set that it belongs to.
async fn keep(app: &App, finished: Finished) {
    let sets = finished.sets.clone();
    let Ok(made) = tokio::task::spawn_blocking(move || pack(finished)).await else { return };
    let new = match made {
        Ok(new) => new,
        Err(error) => {
            tracing::warn!(%error, "a recording of a plugin's call could not be made");
            return;
        }
    };
    for set in sets {
        if let Err(error) = app.store.keep_recording(RecordingSetId(set), new.clone()).await {
            tracing::warn!(%error, set, "a recording of a plugin's call could not be kept");
        }
    }
}

/// The file, without credentials, compressed: it takes some time for a large one.
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

/// A file as it is kept.
pub(crate) fn compress(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(file)?;
    encoder.finish()
}

/// A file as it was before it was kept.
pub fn unpack(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    GzDecoder::new(content).take(MOST).read_to_end(&mut file)?;
    Ok(file)
}
