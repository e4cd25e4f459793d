//! What is noted of a call while it runs, or what answers it when it is replayed. The host tells it each question of the guest and each
//! answer; where no call is recorded there is no tape, and that is all it costs.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use wasmtime::component::Resource;

use super::file::{
    MAX_IMPORTS, RecordedAnswer, RecordedCall, RecordedFailure, RecordedImport, RecordedRepository,
    RecordedWasi, Recording,
};
use super::player::Player;
use super::recorder::{Finished, Reserved, Wanted};
use super::spoken::{Spoken, Writing};
use crate::error::CallError;
use crate::host_error::{GuestError, HostError};
use crate::state::HostState;
use crate::state::http::RequestRep;
use crate::state::outside::Sources;
use crate::view::RepositoryView;

/// See the module.
pub(crate) enum Tape {
    /// The host answers, and it is noted.
    Take(Box<Take>),
    /// A recording answers, of which this is what WASI gives.
    Play(Arc<Mutex<Player>>, RecordedWasi),
}

/// A question of the guest's.
pub(crate) enum Asked {
    /// The host answers; where the answer is to be noted.
    OfHost(Option<usize>),
    /// The recording has the answer.
    Told(RecordedAnswer),
}

/// What an import answers.
pub(crate) trait Told: Sized {
    /// As it stands in a recording.
    fn write(&self, to: &mut Writing) -> RecordedAnswer;
    /// What stands there. The call ends where that is no answer of this import.
    fn read(answer: &RecordedAnswer) -> Self;
}

/// Why a recorded answer is not told.
fn unreadable(answer: &RecordedAnswer) -> CallError {
    CallError::Trap(match answer {
        RecordedAnswer::Stopped(why) => why.clone(),
        _ => "the recording holds what is no answer of this import".to_owned(),
    })
}

impl<T: Spoken> Told for wasmtime::Result<T> {
    fn write(&self, to: &mut Writing) -> RecordedAnswer {
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

impl<T: Spoken> Told for Result<T, HostError> {
    fn write(&self, to: &mut Writing) -> RecordedAnswer {
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

/// A call that is recorded.
pub(crate) struct Take {
    recording: Recording,
    writing: Writing,
    /// Room for what it holds.
    reserved: Reserved,
    wanted: Wanted,
}

impl Take {
    pub(super) fn new(recording: Recording, most: usize, reserved: Reserved, wanted: Wanted) -> Take {
        Take { recording, writing: Writing::recording(most), reserved, wanted }
    }

    fn call(&mut self) -> Option<&mut RecordedCall> {
        self.recording.calls.last_mut()
    }

    fn ask(&mut self, import: &str, arguments: impl FnOnce(&mut Writing) -> Vec<Value>) -> Option<usize> {
        if self.recording.cut.is_some() {
            return None;
        }
        self.writing.gives = false;
        let arguments = arguments(&mut self.writing);
        let asked = RecordedImport { import: import.replace('_', "-"), arguments, answer: None };
        let call = self.call()?;
        call.imports.push(asked);
        let at = call.imports.len() - 1;
        self.bound(at);
        Some(at)
    }

    fn told<T: Told>(&mut self, at: usize, answer: &T) {
        if self.recording.cut.is_some() {
            return;
        }
        self.writing.gives = true;
        let answer = answer.write(&mut self.writing);
        if let Some(asked) = self.call().and_then(|call| call.imports.get_mut(at)) {
            asked.answer = Some(answer);
        }
        self.bound(at);
    }

    /// Ends it where it has become too much.
    fn bound(&mut self, at: usize) {
        if self.recording.cut.is_some() {
            return;
        }
        let most = self.writing.most;
        self.recording.cut = if self.writing.bytes > most {
            Some(format!("it would hold more than {most} bytes"))
        } else if at >= MAX_IMPORTS {
            Some(format!("a call asked more than {MAX_IMPORTS} questions"))
        } else if !self.reserved.grow_to(self.writing.bytes) {
            Some("too many calls were recorded at one time".to_owned())
        } else {
            None
        };
    }
}

impl Tape {
    /// WASI's clocks and random numbers, made of what stands in the recording.
    pub(crate) fn sources(&self) -> Sources {
        match self {
            Tape::Take(take) => take.recording.wasi.sources(),
            Tape::Play(_, wasi) => wasi.sources(),
        }
    }

    /// A question of the guest's to the host. `arguments` is called only where they are noted or compared.
    pub(crate) fn ask(&mut self, import: &str, arguments: impl FnOnce(&mut Writing) -> Vec<Value>) -> Asked {
        match self {
            Tape::Take(take) => Asked::OfHost(take.ask(import, arguments)),
            Tape::Play(player, _) => {
                let arguments = arguments(&mut Writing::replaying());
                let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
                Asked::Told(player.ask(import.replace('_', "-"), arguments))
            }
        }
    }
}

impl HostState {
    /// Whether a recording answers in the host's place.
    pub(crate) fn is_replayed(&self) -> bool {
        matches!(self.tape, Some(Tape::Play(..)))
    }

    /// The host's answer to the question noted at `at`.
    pub(crate) fn note_told<T: Told>(&mut self, at: Option<usize>, answer: &T) {
        if let (Some(Tape::Take(take)), Some(at)) = (&mut self.tape, at) {
            take.told(at, answer);
        }
    }

    /// A call of this function begins.
    pub(crate) fn note_call(&mut self, function: &str) {
        if let Some(Tape::Take(take)) = &mut self.tape {
            take.recording
                .calls
                .push(RecordedCall { function: function.to_owned(), ..RecordedCall::default() });
        }
    }

    /// What the call is given besides handles.
    pub(crate) fn note_arguments(&mut self, arguments: &[&(dyn Spoken + Sync)]) {
        if let Some(Tape::Take(take)) = &mut self.tape {
            let written = arguments.iter().map(|argument| argument.write(&mut take.writing)).collect();
            if let Some(call) = take.call() {
                call.arguments = written;
            }
        }
    }

    /// The handle on the request that the call is given.
    pub(crate) fn note_request(&mut self, request: &Resource<RequestRep>) {
        if let Some(Tape::Take(take)) = &mut self.tape {
            take.writing.gives = true;
            let number = take.writing.number("request", request.rep());
            if let Some(call) = take.call() {
                call.request = Some(number);
            }
        }
    }

    /// A handle on a repository that the call is given.
    pub(crate) fn note_repository(&mut self, rep: u32, view: &RepositoryView, is_target: bool) {
        if let Some(Tape::Take(take)) = &mut self.tape {
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

    /// What the call answered.
    pub(crate) fn note_answer<T: Spoken>(&mut self, answer: &T) {
        match &mut self.tape {
            None => {}
            Some(Tape::Take(take)) => {
                take.writing.gives = false;
                let answer = answer.write(&mut take.writing);
                if let Some(call) = take.call() {
                    call.outcome.answer = Some(answer);
                }
            }
            Some(Tape::Play(player, _)) => {
                let answer = answer.write(&mut Writing::replaying());
                player.lock().unwrap_or_else(PoisonError::into_inner).answered(answer);
            }
        }
    }

    /// The call has ended. What is wanted of it goes to who keeps it.
    pub(crate) fn end_call(&mut self, error: Option<&CallError>) {
        let Some(Tape::Take(take)) = &mut self.tape else { return };
        take.bound(0);
        let Some(call) = take.call() else { return };
        call.outcome.failed =
            error.map(|error| RecordedFailure { kind: error.kind().to_owned(), message: error.to_string() });
        // It goes on with `handle` in this instance, or nothing more is to be said of it.
        let goes_on = call.function == "route" && call.outcome.is_intent();
        let failed = call.outcome.is_failure() && !error.is_some_and(CallError::is_callers);
        if goes_on {
            return;
        }
        if let Some(Tape::Take(take)) = self.tape.take() {
            let Take { recording, reserved, wanted, .. } = *take;
            Finished::hand_over(recording, reserved, wanted, failed);
        }
    }
}

impl super::file::RecordedOutcome {
    /// Whether it is the intent of a `route`, and no refusal or failure.
    fn is_intent(&self) -> bool {
        self.failed.is_none() && self.answer.as_ref().is_some_and(|answer| answer.get("ok").is_some())
    }
}
