//! Recorded calls of policy components. While recording is on for a rule, the server stores calls
//! that failed or refused a version.

use std::sync::Arc;

use packhouse_runtime::{
    CallError, PolicyComponent, PolicyContext, PolicyFacts, PolicyOutcome, PolicyRecording, Ruling,
};
use packhouse_store::{NewRecording, RecordingSetId, RuleRecording, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Rule;
use crate::App;
use crate::recordings::compress;

/// Maximum number of recordings that are written at the same time; further ones are dropped. The
/// facts of a call may take some MiB of memory, and requests do not wait for recordings.
const WRITTEN: usize = 4;

/// The recording set that receives the recordings of a rule's calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    set: RecordingSetId,
    /// End of the recording, in ms since 1970.
    until: i64,
}

impl From<&RuleRecording> for Armed {
    fn from(recording: &RuleRecording) -> Armed {
        Armed { set: recording.set, until: recording.armed_until }
    }
}

/// Limits the number of recordings that are written at the same time.
pub(crate) struct WritePermits(Arc<Semaphore>);

impl Default for WritePermits {
    fn default() -> WritePermits {
        WritePermits(Arc::new(Semaphore::new(WRITTEN)))
    }
}

pub(super) struct EndedCall<'a> {
    pub(super) component: &'a PolicyComponent,
    /// Settings that the component received.
    pub(super) settings: &'a str,
    /// Context that the component received, which is the same for all versions.
    pub(super) context: &'a PolicyContext,
    pub(super) versions: &'a [PolicyFacts],
    pub(super) judged: Result<&'a [Ruling], &'a CallError>,
    /// True if the call was part of a preview.
    pub(super) is_preview: bool,
}

impl App {
    /// Stores this call in the background if recording is on for the rule. Stores only a call that
    /// failed through the component's own fault, or that refused a version outside of a preview. A
    /// preview judges all existing versions, which no client requested.
    pub(super) fn record_call(&self, rule: &Rule, call: &EndedCall<'_>) {
        let Some(armed) = rule.armed.filter(|armed| armed.until > packhouse_store::now_ms()) else { return };
        let is_own_failure = |error: &CallError| {
            !error.is_temporary() && !error.is_callers() && !matches!(error, CallError::Host(_))
        };
        let is_worth_it = match call.judged {
            Ok(rulings) => !call.is_preview && PolicyOutcome::of(Ok(rulings)).refuses(),
            Err(error) => is_own_failure(error),
        };
        if !is_worth_it {
            return;
        }
        let Ok(permit) = Arc::clone(&self.policies.write_permits.0).try_acquire_owned() else {
            tracing::debug!(
                rule = rule.row.name,
                "policy call not recorded: other recordings are being written"
            );
            return;
        };
        let recording = PolicyRecording::new(
            call.component,
            call.settings,
            call.context.clone(),
            call.versions.to_vec(),
            PolicyOutcome::of(call.judged),
        );
        tokio::spawn(keep(self.store.clone(), armed.set, recording, permit));
    }
}

async fn keep(store: Store, set: RecordingSetId, recording: PolicyRecording, permit: OwnedSemaphorePermit) {
    let Ok(made) = tokio::task::spawn_blocking(move || pack(&recording)).await else { return };
    let stored = match made {
        Ok(new) => store.keep_recording(set, new).await.map_err(|error| error.to_string()),
        Err(error) => Err(error),
    };
    if let Err(error) = stored {
        tracing::warn!(error, set = set.0, "could not store the recording of a policy call");
    }
    drop(permit);
}

fn pack(recording: &PolicyRecording) -> Result<NewRecording, String> {
    let file = recording.to_json(&packhouse_identity::SECRET_PREFIXES.map(str::to_owned))?;
    Ok(NewRecording {
        recorded_at: i64::try_from(recording.recorded_at).unwrap_or(i64::MAX),
        function: "judge".to_owned(),
        outcome: recording.outcome.word().to_owned(),
        component: recording.component.clone(),
        is_cut: false,
        content: compress(file.as_bytes()).map_err(|error| error.to_string())?,
    })
}
