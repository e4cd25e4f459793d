//! A recorded call once more, in a component on this machine: without a server, without storage, and with the recording's answers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Instance, Resource};

use super::file::{RecordedCall, RecordedFailure, RecordedLimits, RecordedOutcome, Recording};
use super::player::{Difference, Player, question};
use super::spoken::Spoken;
use super::tape::Tape;
use crate::bindings::packhouse::format::records::VersionId;
use crate::boxed;
use crate::call::Call;
use crate::compiler::{CompiledFolders, Compiler};
use crate::config::Limits;
use crate::engine::EngineOptions;
use crate::error::{CallError, LoadError};
use crate::instance::{Begun, CallName, KeptInstance, Runner};
use crate::load::{self, Loaded};
use crate::plugin::{Code, Guest};
use crate::request::{Action, RequestHead};
use crate::state::records::RepositoryRep;
use crate::state::{Access, HostState};

/// Characters of an answer that are shown.
const SHOWN: usize = 4_000;
/// Memory and time that a recording may ask for.
const MOST_MEMORY: u64 = 2 << 30;
const MOST_TIME_MS: u64 = 600_000;

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is not whole: why.
    #[error("the recording was cut and cannot be replayed: {0}")]
    Cut(String),
    /// The component cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The component is of another format.
    #[error("the recording is of the format {recorded}, and the component is of {found}")]
    Format {
        /// Of the recording.
        recorded: String,
        /// Of the component.
        found: String,
    },
    /// The recording is not as this program writes one: what of it.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
}

/// What a replay did.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// SHA-256 of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// The function that ran last.
    pub function: String,
    /// Where it first did something else than was recorded; none where it did the same.
    pub difference: Option<Difference>,
    /// How it ended, with the content that it wrote where that is known.
    pub outcome: RecordedOutcome,
    /// How the recorded call ended.
    pub recorded: RecordedOutcome,
    /// The question after which it could not go on; none where it came to its end.
    pub unanswered: Option<String>,
}

/// Runs the recording's calls on this component, under their limits; WASI is there for one that imports it. Blocks.
pub fn replay(recording: &Recording, component: &Path) -> Result<Replayed, ReplayError> {
    // On a thread of its own, so that it can be called from within an asynchronous program too.
    let loading = async || Replayer::load(component, None).await;
    let replaying = std::thread::scope(|scope| scope.spawn(|| replay_here(recording, loading)).join());
    replaying.unwrap_or_else(|_| Err(ReplayError::Damaged("replaying it ended in a panic".to_owned())))
}

/// The same on the bytes of a component, which errors call by this name.
pub fn replay_bytes(recording: &Recording, name: &Path, component: Bytes) -> Result<Replayed, ReplayError> {
    let loading = async || {
        let compiler = Replayer::compiler(None)?;
        let loaded = load::examine_bytes(&compiler, name, component.clone(), true, usize::MAX).await?;
        Ok(Replayer { engine: compiler.engine().clone(), loaded })
    };
    let replaying = std::thread::scope(|scope| scope.spawn(|| replay_here(recording, loading)).join());
    replaying.unwrap_or_else(|_| Err(ReplayError::Damaged("replaying it ended in a panic".to_owned())))
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
    loaded: Loaded,
}

impl Replayer {
    /// Compiles the file and asks it what it is. `cache` is a folder for compiled code. `Plugin` says why it cannot be run.
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

    /// Runs the recording's calls, under their limits.
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
    code: &'a Code,
    player: Arc<Mutex<Player>>,
}

impl Replay<'_> {
    async fn run(&self, component: String) -> Result<Replayed, ReplayError> {
        let mut kept: Option<KeptInstance<'_>> = None;
        let mut replayed = None;
        for call in &self.recording.calls {
            self.with_player(|player| player.begin(call.clone()));
            let result = self.call(call, &mut kept).await;
            let done = self.with_player(|player| ended(player, call, result, &component));
            // Another answer than an intent ends the request.
            let goes_on = done.outcome.failed.is_none()
                && done.outcome.answer.as_ref().is_some_and(|answer| answer.get("ok").is_some());
            replayed = Some(done);
            if !goes_on {
                break;
            }
        }
        replayed.ok_or_else(|| ReplayError::Damaged("it holds no call".to_owned()))
    }

    fn with_player<T>(&self, ask: impl FnOnce(&mut Player) -> T) -> T {
        ask(&mut self.player.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs one call, in the instance of the one before where there is one.
    async fn call<'a>(
        &'a self,
        call: &RecordedCall,
        kept: &mut Option<KeptInstance<'a>>,
    ) -> Result<(), CallError> {
        let name = CallName {
            function: "replay",
            format: Arc::clone(&self.runner.plugin),
            repository: None,
            repository_id: None,
            head: Arc::new(RequestHead::default()),
        };
        let body = async |guest: &mut Guest, instance: &Instance| self.enter(guest, instance, call).await;
        match kept.take() {
            Some(instance) => self.runner.go_on(name, instance, self.state(), body).await,
            None => {
                let begun = self.runner.begin(name, || self.state(), &self.code.linked, body).await;
                let Begun { result, instance } = begun?;
                *kept = Some(instance);
                Ok(result)
            }
        }
    }

    fn state(&self) -> HostState {
        let call = Call::new(Arc::new(RequestHead::default()), Action::Read);
        let (plugin, limits) = (Arc::clone(&self.runner.plugin), Arc::clone(&self.runner.limits));
        let mut state = HostState::new(plugin, limits, None, Access::ReadOnly, call);
        state.tape = Some(Tape::Play(Arc::clone(&self.player), self.recording.wasi));
        state
    }

    /// Calls the function with the handles that it was given.
    async fn enter(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        call: &RecordedCall,
    ) -> wasmtime::Result<()> {
        let damaged = |what: &str| wasmtime::Error::msg(format!("the recording is damaged: {what}"));
        let argument = |at: usize| call.arguments.get(at).ok_or_else(|| damaged("an argument is missing"));
        let text = |at: usize| argument(at)?.as_str().ok_or_else(|| damaged("an argument is no text"));
        let target = || -> wasmtime::Result<Resource<RepositoryRep>> {
            let target = call.target.as_ref().ok_or_else(|| damaged("its repository is missing"))?;
            Ok(Resource::new_own(target.handle))
        };
        let id =
            |at: usize| VersionId::read(argument(at)?).ok_or_else(|| damaged("an argument is no version"));
        let not_offered = |what| wasmtime::Error::from(CallError::NotOffered(what));
        let request = Resource::new_borrow(call.request.unwrap_or_default());
        let exports = &self.code.exports;
        match call.function.as_str() {
            "route" => exports.route(guest, instance, text(0)?, request).await.map(drop),
            function @ ("check" | "handle") => {
                let others: Vec<_> =
                    call.others.iter().map(|other| Resource::new_own(other.handle)).collect();
                let target = call.target.as_ref().map(|target| Resource::new_own(target.handle));
                let asked = (request, target, others.as_slice());
                if function == "check" {
                    return exports.check(guest, instance, asked).await.map(drop);
                }
                exports.handle(guest, instance, asked).await.map(drop)
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
                    let ids = Vec::<VersionId>::read(argument(0)?).ok_or_else(|| damaged("no versions"))?;
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

/// What came of a call.
fn ended(
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
    // The host ended both at the same question, or judged the same answer.
    let judged_by_host = recorded.answer.is_some() && recorded.answer == outcome.answer;
    if (player.is_stopped && outcome.failed.is_some()) || judged_by_host {
        outcome.failed.clone_from(&recorded.failed);
    }
    player.end(is_same(&outcome, recorded));
    let shown = |player: &Player, outcome: &RecordedOutcome| RecordedOutcome {
        answer: outcome.answer.as_ref().map(|answer| player.shown(answer)),
        failed: outcome.failed.clone(),
    };
    Replayed {
        component: component.to_owned(),
        function: call.function.clone(),
        difference: player.difference.clone(),
        outcome: shown(player, &outcome),
        recorded: shown(player, recorded),
        unanswered: player.unanswered.take(),
    }
}

/// Whether both ended alike. How long a call took that took too long is chance.
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

/// The highest handle of a recording: those that a replay makes itself are higher.
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
    // Numbers that are no handles are among them, which does no harm as long as there is room above.
    answers
        .filter(|number| *number < u64::from(u32::MAX / 2))
        .max()
        .map_or(1 << 16, |most| u32::try_from(most).unwrap_or_default().max(1 << 16))
}

impl std::fmt::Display for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let function = &self.function;
        match &self.difference {
            None => return write!(f, "{function} did what was recorded: {}", told(&self.outcome)),
            Some(Difference::Outcome) => {
                writeln!(f, "{function} asked what was recorded and ended differently")?
            }
            Some(Difference::Ended { place, recorded }) => {
                let recorded = question(&recorded.import, &recorded.arguments);
                writeln!(
                    f,
                    "{function} ended after {place} questions, where the recorded call asked next\n  {}",
                    cut(&recorded)
                )?;
            }
            Some(Difference::Import { place, recorded, import, arguments }) => {
                writeln!(
                    f,
                    "{function} differs at question {}: it asked\n  {}",
                    place + 1,
                    cut(&question(import, arguments))
                )?;
                match recorded {
                    Some(recorded) => {
                        let recorded = question(&recorded.import, &recorded.arguments);
                        writeln!(f, "where the recorded call asked\n  {}", cut(&recorded))?;
                    }
                    None => writeln!(f, "where the recorded call asked nothing more")?,
                }
            }
        }
        writeln!(f, "recorded: {}", told(&self.recorded))?;
        match &self.unanswered {
            Some(asked) => {
                write!(f, "now: it could not go on, as the recording has no answer to\n  {}", cut(asked))
            }
            None => write!(f, "now: {}", told(&self.outcome)),
        }
    }
}

fn told(outcome: &RecordedOutcome) -> String {
    match (&outcome.failed, &outcome.answer) {
        (Some(failed), _) => format!("it {}", failed.message),
        (None, Some(answer)) => cut(&answer.to_string()),
        (None, None) => "nothing".to_owned(),
    }
}

fn cut(text: &str) -> String {
    let shown = text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default();
    if shown.len() < text.len() { format!("{shown}… ({} bytes)", text.len()) } else { shown.to_owned() }
}
