//! Record and replay: a call's request, what it asked the host and was told, and its answer, as one file without any credential; and the
//! same call again without a server and without storage. It happens at the contract's border (`imports/taped.rs`), so it is the same for
//! guests of every language.
//!
//! `spoken` writes the contract's values as JSON, `file` is the form of a recording, `tape` notes a call, `recorder` says which, `secrets`
//! takes credentials out (`found_secrets` finds them, `secret_forms` replaces them in every form), `player` answers a call that `replay`
//! runs again.

mod file;
#[cfg(test)]
mod file_tests;
mod found_secrets;
mod head;
mod improvised;
mod player;
mod recorded_plugin;
mod recorder;
mod records;
mod replay;
mod secret_forms;
mod secrets;
mod spoken;
mod tape;
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
pub(crate) use spoken::Spoken;
pub(crate) use tape::{Asked, Tape, Told};
