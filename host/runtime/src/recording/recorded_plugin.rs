//! A plugin whose calls may be recorded. It adds a tape to a call if a set requests a recording of
//! the call.

use std::sync::Arc;

use packhouse_store::{RepositoryId, now_ms};

use super::file::{RecordedLimits, RecordedRequest, RecordedWasi, Recording};
use super::recorder::Recorder;
use super::tape::{ActiveRecording, Tape};
use crate::config::Limits;
use crate::request::RequestHead;

/// Most bytes of one recording, counted before they are written as JSON.
const MOST: usize = 8 << 20;
/// Bytes that each recording reserves in addition to its host calls.
const SMALLEST: usize = 16 << 10;

/// The plugin whose calls are recorded.
pub(crate) struct RecordedPlugin {
    pub(crate) recorder: Recorder,
    pub(crate) format: Arc<str>,
    pub(crate) version: String,
    pub(crate) digest: String,
}

impl RecordedPlugin {
    /// Creates a tape for a call on this repository. Returns none if no recording is requested, or
    /// if there is no space for one.
    pub(crate) fn tape(
        &self,
        repository: Option<RepositoryId>,
        head: &RequestHead,
        limits: &Limits,
    ) -> Option<Tape> {
        let sets = self.recorder.sets_for(repository?)?;
        let reserved = self.recorder.reserve(SMALLEST)?;
        let clock_ms = now_ms().unsigned_abs();
        let recording = Recording {
            packhouse_recording: Recording::VERSION,
            format: self.format.as_ref().to_owned(),
            component: self.digest.clone(),
            version: self.version.clone(),
            recorded_at: clock_ms,
            request: RecordedRequest::from(head),
            limits: RecordedLimits::from(limits),
            wasi: RecordedWasi { seed: rand::random(), clock_ms },
            calls: Vec::new(),
            cut: None,
        };
        Some(Tape::Record(Box::new(ActiveRecording::new(recording, MOST, reserved, sets))))
    }
}

impl From<&Limits> for RecordedLimits {
    fn from(limits: &Limits) -> RecordedLimits {
        RecordedLimits {
            memory_bytes: limits.memory_bytes as u64,
            call_timeout_ms: u64::try_from(limits.call_timeout.as_millis()).unwrap_or(u64::MAX),
            hostcall_bytes: limits.hostcall_bytes as u64,
            handles: limits.handles as u64,
        }
    }
}
