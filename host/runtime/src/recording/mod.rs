//! Record and replay. A recording is one file without credentials: a call's request, its host calls
//! with their answers, and its own answer. A replay runs the same call again without a server and
//! without storage. Recorder and replay both work at the contract's border
//! (`imports/recorded_imports.rs`), so they are the same for guests of every language.
//!
//! `trace_value` writes the contract's values as JSON, `file` defines the form of a recording,
//! `tape` records a call, and `recorder` selects the calls. `secrets` removes credentials:
//! `found_secrets` finds them and `secret_forms` replaces them in every form. `player` answers the
//! host calls of a call that `replay` runs again.

mod computed_answers;
mod file;
#[cfg(test)]
mod file_tests;
mod found_secrets;
mod head;
mod player;
mod recorded_plugin;
mod recorder;
mod records;
mod replay;
mod secret_forms;
mod secrets;
mod tape;
mod trace_value;
mod wasi;

pub use file::{
    RecordedAnswer, RecordedCall, RecordedFailure, RecordedImport, RecordedLimits, RecordedOutcome,
    RecordedRepository, RecordedRequest, RecordedWasi, Recording,
};
pub use player::Difference;
pub(crate) use recorded_plugin::RecordedPlugin;
pub use recorder::{Armed, Finished, Recorder};
pub use replay::{ReplayError, Replayed, Replayer, replay, replay_bytes};
pub(crate) use secrets::hide_words;
pub(crate) use tape::{AnswerSource, RecordableResult, Tape};
pub(crate) use trace_value::TraceValue;
