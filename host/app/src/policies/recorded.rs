//! Calls of policies' components that are kept, where somebody wants it of a rule: those that failed, and those that refused something.

use std::sync::Arc;

use packhouse_runtime::{
    CallError, PolicyComponent, PolicyContext, PolicyFacts, PolicyOutcome, PolicyRecording, Ruling,
};
use packhouse_store::{NewRecording, RecordingSetId, RuleRecording, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Rule;
use crate::App;
use crate::recordings::compress;

/// Recordings that are written at one time. What is to be recorded meanwhile is not: a call's facts take some MiB, and no request waits
/// for its recording.
const WRITTEN: usize = 4;

/// Where recordings of a rule's calls go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    set: RecordingSetId,
    /// In ms since 1970.
    until: i64,
}

impl From<&RuleRecording> for Armed {
    fn from(recording: &RuleRecording) -> Armed {
        Armed { set: recording.set, until: recording.armed_until }
    }
}

/// Bounds what is written at one time.
pub(crate) struct Writing(Arc<Semaphore>);

impl Default for Writing {
    fn default() -> Writing {
        Writing(Arc::new(Semaphore::new(WRITTEN)))
    }
}

/// A judging call that has ended.
pub(super) struct EndedCall<'a> {
    /// What judged.
    pub(super) component: &'a PolicyComponent,
    /// As the component was given them.
    pub(super) settings: &'a str,
    /// What is the same for all versions.
    pub(super) context: &'a PolicyContext,
    /// What was judged.
    pub(super) versions: &'a [PolicyFacts],
    /// What became of it.
    pub(super) judged: Result<&'a [Ruling], &'a CallError>,
    /// Whether it was only to see what would be refused.
    pub(super) is_preview: bool,
}

impl App {
    /// Keeps this call of a rule's component in the background, where that is wanted and it is worth it: one that failed by the component's
    /// own doing, or that refused something in earnest. A preview refuses what nobody asked for, over all that is there.
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
        let Ok(permit) = Arc::clone(&self.policies.writing.0).try_acquire_owned() else {
            tracing::debug!(
                rule = rule.row.name,
                "a call of a policy is not recorded: others are being written"
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
    let kept = match made {
        Ok(new) => store.keep_recording(set, new).await.map_err(|error| error.to_string()),
        Err(error) => Err(error),
    };
    if let Err(error) = kept {
        tracing::warn!(error, set = set.0, "a recording of a policy's call could not be kept");
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
