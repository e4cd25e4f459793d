//! Replay of a recorded call on this machine. A component runs without a server or storage, and
//! receives the recording's answers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Instance, Resource};

use super::file::{RecordedCall, RecordedFailure, RecordedLimits, RecordedOutcome, Recording};
use super::player::{Difference, Player, host_call_text};
use super::tape::Tape;
use super::trace_value::TraceValue;
use crate::bindings::packhouse::format::records::VersionId;
use crate::boxed;
use crate::call::Call;
use crate::compiler::{CompiledFolders, Compiler};
use crate::config::Limits;
use crate::engine::EngineOptions;
use crate::error::{CallError, LoadError};
use crate::instance::{CallName, FinishedCall, ReusableInstance, Runner};
use crate::load::{self, LoadedComponent};
use crate::plugin::{Guest, LinkedComponent};
use crate::request::{Action, RequestHead};
use crate::state::records::RepositoryRep;
use crate::state::{Access, HostState};

/// Most characters of an answer that are displayed.
const MAX_DISPLAYED: usize = 4_000;
/// Most memory and time that a recording may request.
const MOST_MEMORY: u64 = 2 << 30;
const MOST_TIME_MS: u64 = 600_000;

/// Reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The recording is incomplete for this reason.
    #[error("the recording is incomplete and cannot be replayed: {0}")]
    Cut(String),
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The component has another format.
    #[error("the recording is for the format {recorded}, but the component is for {found}")]
    Format { recorded: String, found: String },
    /// The recording does not have the form that this program writes; the text says why.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
}

#[derive(Clone, Debug)]
pub struct Replayed {
    /// SHA-256 of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    pub function: String,
    /// First difference from the recording. None if the replay did the same.
    pub difference: Option<Difference>,
    /// Outcome of the replay, including the written content if it is known.
    pub outcome: RecordedOutcome,
    /// Outcome of the recorded call.
    pub recorded: RecordedOutcome,
    /// Host call that could not be answered. None if the replay ran to its end.
    pub unanswered: Option<String>,
}

/// Replays the recording's calls on this component, under their limits. WASI is linked if the
/// component imports it. Blocks.
pub fn replay(recording: &Recording, component: &Path) -> Result<Replayed, ReplayError> {
    // A separate thread allows calls from an asynchronous program.
    let loading = async || Replayer::load(component, None).await;
    let replaying = std::thread::scope(|scope| scope.spawn(|| replay_here(recording, loading)).join());
    replaying.unwrap_or_else(|_| Err(ReplayError::Damaged("replaying it panicked".to_owned())))
}

/// Replays the recording's calls on the component in these bytes. Errors use this name.
pub fn replay_bytes(recording: &Recording, name: &Path, component: Bytes) -> Result<Replayed, ReplayError> {
    let loading = async || {
        let compiler = Replayer::compiler(None)?;
        let loaded = load::examine_bytes(&compiler, name, component.clone(), true, usize::MAX).await?;
        Ok(Replayer { engine: compiler.engine().clone(), loaded })
    };
    let replaying = std::thread::scope(|scope| scope.spawn(|| replay_here(recording, loading)).join());
    replaying.unwrap_or_else(|_| Err(ReplayError::Damaged("replaying it panicked".to_owned())))
}

fn replay_here(
    recording: &Recording,
    load: impl AsyncFn() -> Result<Replayer, LoadError>,
) -> Result<Replayed, ReplayError> {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| LoadError::Engine(error.to_string()))?;
    executor.block_on(async { load().await?.replay(recording).await })
}

/// A component that recordings can be replayed on.
pub struct Replayer {
    engine: Engine,
    loaded: LoadedComponent,
}

impl Replayer {
    /// Compiles and describes the component in a file. `cache` is a folder for compiled code.
    /// `Plugin` states why it cannot run.
    #[boxed]
    pub async fn load(component: &Path, cache: Option<&Path>) -> Result<Replayer, LoadError> {
        let compiler = Replayer::compiler(cache)?;
        let loaded = load::examine(&compiler, component, true, usize::MAX).await?;
        Ok(Replayer { engine: compiler.engine().clone(), loaded })
    }

    fn compiler(cache: Option<&Path>) -> Result<Compiler, LoadError> {
        let memory_bytes = Limits::default().memory_bytes;
        let folders = CompiledFolders { cache, installed: None };
        Compiler::new(&EngineOptions { pool: None, memory_bytes }, folders)
    }

    /// Replays the recording's calls, under their limits.
    #[boxed]
    pub async fn replay(&self, recording: &Recording) -> Result<Replayed, ReplayError> {
        if let Some(why) = &recording.cut {
            return Err(ReplayError::Cut(why.clone()));
        }
        let found = &self.loaded.description.format;
        if *found != recording.format {
            let (recorded, found) = (recording.format.clone(), found.clone());
            return Err(ReplayError::Format { recorded, found });
        }
        let format = recording.format.as_str().into();
        let (limits, place) = (limits(recording.limits), Arc::new(Semaphore::new(1)));
        let player = Player::new(recording.request.clone(), recording.recorded_at, highest(recording));
        let replay = Replay {
            recording,
            runner: Runner::new(self.engine.clone(), format, limits, place),
            code: &self.loaded.code,
            player: Arc::new(Mutex::new(player)),
        };
        replay.run(self.loaded.digest.digest().to_string()).await
    }
}

struct Replay<'a> {
    recording: &'a Recording,
    runner: Runner,
    code: &'a LinkedComponent,
    player: Arc<Mutex<Player>>,
}

impl Replay<'_> {
    async fn run(&self, component: String) -> Result<Replayed, ReplayError> {
        let mut reusable: Option<ReusableInstance<'_>> = None;
        let mut replayed = None;
        for call in &self.recording.calls {
            self.with_player(|player| player.begin(call.clone()));
            let result = self.call(call, &mut reusable).await;
            let done = self.with_player(|player| compare(player, call, result, &component));
            // Any answer except an intent ends the request.
            let continues = done.outcome.failed.is_none()
                && done.outcome.answer.as_ref().is_some_and(|answer| answer.get("ok").is_some());
            replayed = Some(done);
            if !continues {
                break;
            }
        }
        replayed.ok_or_else(|| ReplayError::Damaged("it does not contain a call".to_owned()))
    }

    fn with_player<T>(&self, ask: impl FnOnce(&mut Player) -> T) -> T {
        ask(&mut self.player.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs one call, in the instance of the previous call if there is one.
    async fn call<'a>(
        &'a self,
        call: &RecordedCall,
        reusable: &mut Option<ReusableInstance<'a>>,
    ) -> Result<(), CallError> {
        let name = CallName {
            function: "replay",
            format: Arc::clone(&self.runner.plugin),
            repository: None,
            repository_id: None,
            head: Arc::new(RequestHead::default()),
        };
        let body = async |guest: &mut Guest, instance: &Instance| self.enter(guest, instance, call).await;
        match reusable.take() {
            Some(instance) => self.runner.resume(name, instance, self.state(), body).await,
            None => {
                let finished = self.runner.begin(name, || self.state(), &self.code.linked, body).await;
                let FinishedCall { result, instance } = finished?;
                *reusable = Some(instance);
                Ok(result)
            }
        }
    }

    fn state(&self) -> HostState {
        let call = Call::new(Arc::new(RequestHead::default()), Action::Read);
        let (plugin, limits) = (Arc::clone(&self.runner.plugin), Arc::clone(&self.runner.limits));
        let mut state = HostState::new(plugin, limits, None, Access::ReadOnly, call);
        state.tape = Some(Tape::Replay(Arc::clone(&self.player), self.recording.wasi));
        state
    }

    /// Calls the function with the recorded handles.
    async fn enter(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        call: &RecordedCall,
    ) -> wasmtime::Result<()> {
        let damaged = |what: &str| wasmtime::Error::msg(format!("the recording is damaged: {what}"));
        let argument = |at: usize| call.arguments.get(at).ok_or_else(|| damaged("an argument is missing"));
        let text = |at: usize| argument(at)?.as_str().ok_or_else(|| damaged("an argument is not a string"));
        let target = || -> wasmtime::Result<Resource<RepositoryRep>> {
            let target = call.target.as_ref().ok_or_else(|| damaged("its repository is missing"))?;
            Ok(Resource::new_own(target.handle))
        };
        let id =
            |at: usize| VersionId::read(argument(at)?).ok_or_else(|| damaged("an argument is not a version"));
        let not_offered = |what| wasmtime::Error::from(CallError::NotOffered(what));
        let request = Resource::new_borrow(call.request.unwrap_or_default());
        let exports = &self.code.exports;
        match call.function.as_str() {
            "route" => exports.route(guest, instance, text(0)?, request).await.map(drop),
            function @ ("check" | "handle") => {
                let others: Vec<_> =
                    call.others.iter().map(|other| Resource::new_own(other.handle)).collect();
                let target = call.target.as_ref().map(|target| Resource::new_own(target.handle));
                let arguments = (request, target, others.as_slice());
                if function == "check" {
                    return exports.check(guest, instance, arguments).await.map(drop);
                }
                exports.handle(guest, instance, arguments).await.map(drop)
            }
            function @ ("delete_version" | "mark_version") => {
                let upkeep = self.code.upkeep.as_ref().ok_or_else(|| not_offered("upkeep"))?;
                let upkeep = upkeep.load(&mut *guest, instance)?;
                let answer = if function == "delete_version" {
                    upkeep.call_delete_version(&mut *guest, target()?, &id(0)?).await?
                } else {
                    upkeep.call_mark_version(&mut *guest, target()?, &id(0)?, text(1)?, text(2)?).await?
                };
                guest.data_mut().note_answer(&answer);
                Ok(())
            }
            "present_version" => {
                let present = self.code.present.as_ref().ok_or_else(|| not_offered("present"))?;
                let present = present.load(&mut *guest, instance)?;
                let answer = present.call_present_version(&mut *guest, target()?, &id(0)?).await?;
                guest.data_mut().note_answer(&answer);
                Ok(())
            }
            function @ ("judge_versions" | "list_unshown") => {
                let retention = self.code.retention.as_ref().ok_or_else(|| not_offered("retention"))?;
                let retention = retention.load(&mut *guest, instance)?;
                let answer = if function == "judge_versions" {
                    let ids = Vec::<VersionId>::read(argument(0)?)
                        .ok_or_else(|| damaged("the versions are missing"))?;
                    retention.call_judge_versions(&mut *guest, target()?, &ids).await?
                } else {
                    retention.call_list_unshown(&mut *guest, target()?, text(0)?).await?
                };
                guest.data_mut().note_answer(&answer);
                Ok(())
            }
            other => Err(damaged(&format!("there is no function {other:?}"))),
        }
    }
}

/// Compares an ended call with its recording.
fn compare(
    player: &mut Player,
    call: &RecordedCall,
    result: Result<(), CallError>,
    component: &str,
) -> Replayed {
    let failed = result
        .err()
        .map(|error| RecordedFailure { kind: error.kind().to_owned(), message: error.to_string() });
    let mut outcome = RecordedOutcome { answer: player.answer.take(), failed };
    let recorded = &call.outcome;
    // The host ended both calls at the same host call, or refused the same answer of both.
    let judged_by_host = recorded.answer.is_some() && recorded.answer == outcome.answer;
    if (player.is_stopped && outcome.failed.is_some()) || judged_by_host {
        outcome.failed.clone_from(&recorded.failed);
    }
    player.end(is_same(&outcome, recorded));
    let displayed = |player: &Player, outcome: &RecordedOutcome| RecordedOutcome {
        answer: outcome.answer.as_ref().map(|answer| player.displayed(answer)),
        failed: outcome.failed.clone(),
    };
    Replayed {
        component: component.to_owned(),
        function: call.function.clone(),
        difference: player.difference.clone(),
        outcome: displayed(player, &outcome),
        recorded: displayed(player, recorded),
        unanswered: player.unanswered.take(),
    }
}

/// Returns true if both outcomes are equal. The duration of a call that exceeded its deadline does
/// not count.
fn is_same(outcome: &RecordedOutcome, recorded: &RecordedOutcome) -> bool {
    let late =
        |outcome: &RecordedOutcome| outcome.failed.as_ref().is_some_and(|failed| failed.kind == "deadline");
    outcome == recorded || (late(outcome) && late(recorded))
}

fn limits(recorded: RecordedLimits) -> Limits {
    let bounded = |bytes: u64, most: u64| usize::try_from(bytes.min(most)).unwrap_or(usize::MAX);
    Limits {
        memory_bytes: bounded(recorded.memory_bytes, MOST_MEMORY),
        call_timeout: Duration::from_millis(recorded.call_timeout_ms.min(MOST_TIME_MS)),
        hostcall_bytes: bounded(recorded.hostcall_bytes, MOST_MEMORY),
        handles: bounded(recorded.handles, 1 << 20),
        ..Limits::default()
    }
}

/// Returns the highest handle of a recording. The handles that a replay creates itself are higher.
fn highest(recording: &Recording) -> u32 {
    fn of(value: &serde_json::Value) -> u64 {
        match value {
            serde_json::Value::Number(number) => number.as_u64().unwrap_or_default(),
            serde_json::Value::Array(items) => items.iter().map(of).max().unwrap_or_default(),
            serde_json::Value::Object(fields) => fields.values().map(of).max().unwrap_or_default(),
            _ => 0,
        }
    }
    let answers =
        recording.calls.iter().flat_map(|call| &call.imports).filter_map(|import| match &import.answer {
            Some(super::file::RecordedAnswer::Ok(value)) => Some(of(value)),
            _ => None,
        });
    // Some of the numbers are not handles, which only makes the result higher than necessary. The
    // bound leaves numbers for new handles.
    answers
        .filter(|number| *number < u64::from(u32::MAX / 2))
        .max()
        .map_or(1 << 16, |most| u32::try_from(most).unwrap_or_default().max(1 << 16))
}

impl std::fmt::Display for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let function = &self.function;
        match &self.difference {
            None => return write!(f, "{function} behaved as recorded: {}", outcome_text(&self.outcome)),
            Some(Difference::Outcome) => {
                writeln!(f, "{function} made the recorded host calls and ended differently")?
            }
            Some(Difference::Ended { place, recorded }) => {
                let recorded = host_call_text(&recorded.import, &recorded.arguments);
                writeln!(
                    f,
                    "{function} ended after {place} host calls; the recording continues with\n  {}",
                    cut(&recorded)
                )?;
            }
            Some(Difference::Import { place, recorded, import, arguments }) => {
                writeln!(
                    f,
                    "{function} differs at host call {}: it called\n  {}",
                    place + 1,
                    cut(&host_call_text(import, arguments))
                )?;
                match recorded {
                    Some(recorded) => {
                        let recorded = host_call_text(&recorded.import, &recorded.arguments);
                        writeln!(f, "the recording has\n  {}", cut(&recorded))?;
                    }
                    None => writeln!(f, "the recording ends there")?,
                }
            }
        }
        writeln!(f, "recorded: {}", outcome_text(&self.recorded))?;
        match &self.unanswered {
            Some(host_call) => {
                write!(
                    f,
                    "now: it could not continue, because the recording has no answer to\n  {}",
                    cut(host_call)
                )
            }
            None => write!(f, "now: {}", outcome_text(&self.outcome)),
        }
    }
}

fn outcome_text(outcome: &RecordedOutcome) -> String {
    match (&outcome.failed, &outcome.answer) {
        (Some(failed), _) => format!("it {}", failed.message),
        (None, Some(answer)) => cut(&answer.to_string()),
        (None, None) => "nothing".to_owned(),
    }
}

fn cut(text: &str) -> String {
    let start = text.get(..text.floor_char_boundary(MAX_DISPLAYED)).unwrap_or_default();
    if start.len() < text.len() { format!("{start}… ({} bytes)", text.len()) } else { start.to_owned() }
}
