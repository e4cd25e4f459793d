//! The tape of a call: it records the call, or answers its host calls in a replay. The host passes
//! each host call and each answer to the tape. A call that is not recorded has no tape, and costs
//! only the check for one.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use wasmtime::component::Resource;

use super::file::{
    MAX_IMPORTS, RecordedAnswer, RecordedCall, RecordedFailure, RecordedImport, RecordedRepository,
    RecordedWasi, Recording,
};
use super::player::Player;
use super::recorder::{Finished, RequestedSets, Reserved};
use super::trace_value::{TraceValue, TraceWriter};
use crate::error::CallError;
use crate::host_error::{GuestError, HostError};
use crate::state::HostState;
use crate::state::http::RequestRep;
use crate::state::wasi_clock_random::WasiSources;
use crate::view::RepositoryView;

/// Tape of a recorded or replayed call.
pub(crate) enum Tape {
    /// The host answers, and the tape records it.
    Record(Box<ActiveRecording>),
    /// A recording answers. It also holds the values for WASI.
    Replay(Arc<Mutex<Player>>, RecordedWasi),
}

/// Source of the answer to a host call.
pub(crate) enum AnswerSource {
    /// The host answers. Holds the index of the host call if the answer is to be recorded.
    Host(Option<usize>),
    Recorded(RecordedAnswer),
}

/// Result of an import in a form that a tape can record.
pub(crate) trait RecordableResult: Sized {
    /// Converts the result to its recorded form.
    fn write(&self, to: &mut TraceWriter) -> RecordedAnswer;
    /// Reads the recorded form. The call ends if it is not a result of this import.
    fn read(answer: &RecordedAnswer) -> Self;
}

/// Returns the error for an unusable recorded answer.
fn unreadable(answer: &RecordedAnswer) -> CallError {
    CallError::Trap(match answer {
        RecordedAnswer::Stopped(why) => why.clone(),
        _ => "the recording contains a value that is not a result of this import".to_owned(),
    })
}

impl<T: TraceValue> RecordableResult for wasmtime::Result<T> {
    fn write(&self, to: &mut TraceWriter) -> RecordedAnswer {
        match self {
            Ok(value) => RecordedAnswer::Ok(value.write(to)),
            Err(error) => RecordedAnswer::Stopped(error.root_cause().to_string()),
        }
    }

    fn read(answer: &RecordedAnswer) -> Self {
        let read = if let RecordedAnswer::Ok(value) = answer { T::read(value) } else { None };
        read.ok_or_else(|| unreadable(answer).into())
    }
}

impl<T: TraceValue> RecordableResult for Result<T, HostError> {
    fn write(&self, to: &mut TraceWriter) -> RecordedAnswer {
        match self {
            Ok(value) => RecordedAnswer::Ok(value.write(to)),
            Err(HostError::Tell(error)) => RecordedAnswer::Error(error.write(to)),
            Err(HostError::Stop(error)) => RecordedAnswer::Stopped(error.to_string()),
        }
    }

    fn read(answer: &RecordedAnswer) -> Self {
        let read = match answer {
            RecordedAnswer::Ok(value) => T::read(value).map(Ok),
            RecordedAnswer::Error(error) => GuestError::read(error).map(|error| Err(HostError::Tell(error))),
            RecordedAnswer::Stopped(_) => None,
        };
        read.unwrap_or_else(|| Err(unreadable(answer).into()))
    }
}

pub(crate) struct ActiveRecording {
    recording: Recording,
    writing: TraceWriter,
    reserved: Reserved,
    requested: RequestedSets,
}

impl ActiveRecording {
    pub(super) fn new(
        recording: Recording,
        most: usize,
        reserved: Reserved,
        requested: RequestedSets,
    ) -> ActiveRecording {
        ActiveRecording { recording, writing: TraceWriter::recording(most), reserved, requested }
    }

    fn call(&mut self) -> Option<&mut RecordedCall> {
        self.recording.calls.last_mut()
    }

    fn ask(&mut self, import: &str, arguments: impl FnOnce(&mut TraceWriter) -> Vec<Value>) -> Option<usize> {
        if self.recording.cut.is_some() {
            return None;
        }
        self.writing.gives = false;
        let arguments = arguments(&mut self.writing);
        let host_call = RecordedImport { import: import.replace('_', "-"), arguments, answer: None };
        let call = self.call()?;
        call.imports.push(host_call);
        let at = call.imports.len() - 1;
        self.bound(at);
        Some(at)
    }

    fn answered<T: RecordableResult>(&mut self, at: usize, answer: &T) {
        if self.recording.cut.is_some() {
            return;
        }
        self.writing.gives = true;
        let answer = answer.write(&mut self.writing);
        if let Some(host_call) = self.call().and_then(|call| call.imports.get_mut(at)) {
            host_call.answer = Some(answer);
        }
        self.bound(at);
    }

    /// Cuts the recording if it has become too large.
    fn bound(&mut self, at: usize) {
        if self.recording.cut.is_some() {
            return;
        }
        let most = self.writing.most;
        self.recording.cut = if self.writing.bytes > most {
            Some(format!("it would have more than {most} bytes"))
        } else if at >= MAX_IMPORTS {
            Some(format!("a call made more than {MAX_IMPORTS} host calls"))
        } else if !self.reserved.grow_to(self.writing.bytes) {
            Some("too many calls were recorded at one time".to_owned())
        } else {
            None
        };
    }
}

impl Tape {
    /// Returns WASI's clocks and random numbers, derived from the recording's values.
    pub(crate) fn sources(&self) -> WasiSources {
        match self {
            Tape::Record(take) => take.recording.wasi.sources(),
            Tape::Replay(_, wasi) => wasi.sources(),
        }
    }

    /// Passes a host call of the guest to the tape. `arguments` is called only if they are recorded
    /// or compared.
    pub(crate) fn ask(
        &mut self,
        import: &str,
        arguments: impl FnOnce(&mut TraceWriter) -> Vec<Value>,
    ) -> AnswerSource {
        match self {
            Tape::Record(take) => AnswerSource::Host(take.ask(import, arguments)),
            Tape::Replay(player, _) => {
                let arguments = arguments(&mut TraceWriter::replaying());
                let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
                AnswerSource::Recorded(player.ask(import.replace('_', "-"), arguments))
            }
        }
    }
}

impl HostState {
    /// Returns true if a recording answers in the host's place.
    pub(crate) fn is_replayed(&self) -> bool {
        matches!(self.tape, Some(Tape::Replay(..)))
    }

    /// Records the host's answer to the host call with the index `at`.
    pub(crate) fn record_answer<T: RecordableResult>(&mut self, at: Option<usize>, answer: &T) {
        if let (Some(Tape::Record(take)), Some(at)) = (&mut self.tape, at) {
            take.answered(at, answer);
        }
    }

    /// Records the start of a call of this function.
    pub(crate) fn note_call(&mut self, function: &str) {
        if let Some(Tape::Record(take)) = &mut self.tape {
            take.recording
                .calls
                .push(RecordedCall { function: function.to_owned(), ..RecordedCall::default() });
        }
    }

    /// Records the arguments of the call, except handles.
    pub(crate) fn note_arguments(&mut self, arguments: &[&(dyn TraceValue + Sync)]) {
        if let Some(Tape::Record(take)) = &mut self.tape {
            let written = arguments.iter().map(|argument| argument.write(&mut take.writing)).collect();
            if let Some(call) = take.call() {
                call.arguments = written;
            }
        }
    }

    /// Records the request handle that the call receives.
    pub(crate) fn note_request(&mut self, request: &Resource<RequestRep>) {
        if let Some(Tape::Record(take)) = &mut self.tape {
            take.writing.gives = true;
            let number = take.writing.number("request", request.rep());
            if let Some(call) = take.call() {
                call.request = Some(number);
            }
        }
    }

    /// Records a repository handle that the call receives.
    pub(crate) fn note_repository(&mut self, rep: u32, view: &RepositoryView, is_target: bool) {
        if let Some(Tape::Record(take)) = &mut self.tape {
            take.writing.gives = true;
            let repository = RecordedRepository {
                handle: take.writing.number("repository", rep),
                name: view.name.as_ref().to_owned(),
                kind: view.kind.as_ref().to_owned(),
                settings: view.settings.as_ref().to_owned(),
            };
            match take.call() {
                Some(call) if is_target => call.target = Some(repository),
                Some(call) => call.others.push(repository),
                None => {}
            }
        }
    }

    /// Records the answer of the call.
    pub(crate) fn note_answer<T: TraceValue>(&mut self, answer: &T) {
        match &mut self.tape {
            None => {}
            Some(Tape::Record(take)) => {
                take.writing.gives = false;
                let answer = answer.write(&mut take.writing);
                if let Some(call) = take.call() {
                    call.outcome.answer = Some(answer);
                }
            }
            Some(Tape::Replay(player, _)) => {
                let answer = answer.write(&mut TraceWriter::replaying());
                player.lock().unwrap_or_else(PoisonError::into_inner).answered(answer);
            }
        }
    }

    /// Records the end of the call, and hands the recording over if it is requested.
    pub(crate) fn end_call(&mut self, error: Option<&CallError>) {
        let Some(Tape::Record(take)) = &mut self.tape else { return };
        take.bound(0);
        let Some(call) = take.call() else { return };
        call.outcome.failed =
            error.map(|error| RecordedFailure { kind: error.kind().to_owned(), message: error.to_string() });
        // An intent continues with `handle` in this instance; anything else ends the recording.
        let continues = call.function == "route" && call.outcome.is_intent();
        let failed = call.outcome.is_failure() && !error.is_some_and(CallError::is_callers);
        if continues {
            return;
        }
        if let Some(Tape::Record(take)) = self.tape.take() {
            let ActiveRecording { recording, reserved, requested, .. } = *take;
            Finished::hand_over(recording, reserved, requested, failed);
        }
    }
}

impl super::file::RecordedOutcome {
    /// Returns true for the intent of a `route`, and false for a refusal or failure.
    fn is_intent(&self) -> bool {
        self.failed.is_none() && self.answer.as_ref().is_some_and(|answer| answer.get("ok").is_some())
    }
}
