//! A plugin whose calls may be recorded: it gives a call a tape where somebody wants a recording of it.

use std::sync::Arc;

use packhouse_store::{RepositoryId, now_ms};

use super::file::{RecordedLimits, RecordedRequest, RecordedWasi, Recording};
use super::recorder::{Recorder, Wanted};
use super::tape::{Take, Tape};
use crate::aside::Aside;
use crate::config::Limits;
use crate::request::RequestHead;

/// Bytes that one recording holds at most, counted before they are written as JSON.
const MOST: usize = 8 << 20;
/// What a recording counts for besides what its call asks.
const SMALLEST: usize = 16 << 10;

/// The plugin whose calls are recorded.
pub(crate) struct RecordedPlugin {
    pub(crate) recorder: Recorder,
    pub(crate) format: Arc<str>,
    pub(crate) version: String,
    /// Of the component.
    pub(crate) digest: String,
}

impl RecordedPlugin {
    /// A tape for a call about this repository; none where none is wanted, or where there is no room for one.
    pub(crate) fn tape(
        &self,
        repository: Option<RepositoryId>,
        head: &RequestHead,
        limits: &Limits,
    ) -> Option<Tape> {
        self.take(self.recorder.wanted(repository?)?, head, limits)
    }

    /// A tape for a call aside, to which the recording is handed.
    pub(crate) fn tape_aside(&self, aside: &Arc<Aside>, head: &RequestHead, limits: &Limits) -> Option<Tape> {
        self.take(self.recorder.wanted_aside(aside), head, limits)
    }

    fn take(&self, wanted: Wanted, head: &RequestHead, limits: &Limits) -> Option<Tape> {
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
        Some(Tape::Take(Box::new(Take::new(recording, MOST, reserved, wanted))))
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
