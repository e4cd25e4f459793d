//! Policies as Wasm components: pure functions over facts that the host knows about versions. They
//! have the limits of plugins and some of their own.
//!
//! A component is compiled by the same engine and imports nothing. Each call runs in a fresh
//! instance, for at most [`MAX_BATCH`] versions. Any failure is a [`CallError`](crate::CallError);
//! the caller then denies the versions.

mod component;
mod components;
mod context;
mod description;
mod recording;

pub(crate) use components::FOLDER;

pub use component::PolicyComponent;
pub use components::{PolicyComponents, RefusedPolicy};
pub use context::purpose_word;
pub use description::{IgnoredFact, OptionalFact, PolicyDescription};
pub use recording::{PolicyOutcome, PolicyRecording, PolicyReplayed, replay_policy};

/// Most versions of one call.
pub const MAX_BATCH: usize = 1_000;
/// Most names in use that a component receives.
pub const MAX_NAMES: usize = 10_000;
/// Most characters of a sentence; longer ones are cut.
const MAX_SENTENCE: usize = 500;

/// Code that is generated from wit/policy-v0.1.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; wit/policy-v0.1 documents it")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/policy-v0.1",
        world: "policy-component",
        exports: { default: async },
        additional_derives: [serde::Serialize, serde::Deserialize],
    });
}

pub use bindings::exports::packhouse::policy::policy::{
    Advisory as PolicyAdvisory, Context as PolicyContext, Facts as PolicyFacts, File as PolicyFile,
    Provenance as PolicyProvenance, Purpose as PolicyPurpose,
};

use bindings::exports::packhouse::policy::policy as wit;
use serde::{Deserialize, Serialize};

/// A policy's ruling on a version. Sentences are one line, and cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    Allow,
    /// The version passes. The sentence goes to the log.
    Warn(String),
    /// The version does not pass yet.
    Hold {
        sentence: String,
        /// Time in ms since 1970 from which the ruling may differ.
        until: Option<u64>,
    },
    Deny(String),
}

impl From<wit::Ruling> for Ruling {
    fn from(ruling: wit::Ruling) -> Ruling {
        match ruling {
            wit::Ruling::Allow => Ruling::Allow,
            wit::Ruling::Warn(text) => Ruling::Warn(sentence(&text)),
            wit::Ruling::Hold(hold) => Ruling::Hold { sentence: sentence(&hold.sentence), until: hold.until },
            wit::Ruling::Deny(text) => Ruling::Deny(sentence(&text)),
        }
    }
}

/// Cuts a text to one line without control characters.
fn sentence(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).take(MAX_SENTENCE).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_one_line_and_is_cut() {
        let text = format!("a\r\nb{}", "c".repeat(MAX_SENTENCE));
        let Ruling::Deny(sentence) = Ruling::from(wit::Ruling::Deny(text)) else { panic!("it is denied") };
        assert!(sentence.starts_with("a  bccc") && sentence.chars().count() == MAX_SENTENCE);
    }
}
