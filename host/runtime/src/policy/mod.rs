//! Policies as Wasm components: pure functions over what the host knows of versions, under the limits of formats and of their own.
//!
//! A component is compiled by the same engine, imports nothing, and is asked in a fresh instance each time, for at most
//! [`MAX_BATCH`] versions. Whatever goes wrong is a [`CallError`](crate::CallError): what becomes of the versions then is the caller's
//! to say, and it denies them.

mod component;
mod components;
mod context;
mod description;
mod recording;

pub(crate) use components::FOLDER;

pub use component::PolicyComponent;
pub use components::{PolicyComponents, RefusedPolicy};
pub use context::purpose_word;
pub use description::{IgnoredFact, PolicyDescription, WantedFact};
pub use recording::{PolicyOutcome, PolicyRecording, PolicyReplayed, replay_policy};

/// Versions of one call at most.
pub const MAX_BATCH: usize = 1_000;
/// Names in use that a component is told at most.
pub const MAX_NAMES: usize = 10_000;
/// Characters of a sentence that are kept.
const MAX_SENTENCE: usize = 500;

/// Code generated from wit/policy-v0.1.
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

/// What a policy says of a version. Sentences are one line, and cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It passes.
    Allow,
    /// It passes, and a sentence is for the log.
    Warn(String),
    /// It does not pass yet.
    Hold {
        /// Why.
        sentence: String,
        /// From when on it may be judged otherwise, in ms since 1970.
        until: Option<u64>,
    },
    /// It does not pass.
    Deny(String),
}

impl From<wit::Ruling> for Ruling {
    fn from(ruling: wit::Ruling) -> Ruling {
        match ruling {
            wit::Ruling::Allow => Ruling::Allow,
            wit::Ruling::Warn(said) => Ruling::Warn(sentence(&said)),
            wit::Ruling::Hold(hold) => Ruling::Hold { sentence: sentence(&hold.sentence), until: hold.until },
            wit::Ruling::Deny(said) => Ruling::Deny(sentence(&said)),
        }
    }
}

/// One line without control characters.
fn sentence(said: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    said.chars().map(plain).take(MAX_SENTENCE).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_one_line_and_no_more_than_can_be_read() {
        let said = format!("a\r\nb{}", "c".repeat(MAX_SENTENCE));
        let Ruling::Deny(sentence) = Ruling::from(wit::Ruling::Deny(said)) else { panic!("it is denied") };
        assert!(sentence.starts_with("a  bccc") && sentence.chars().count() == MAX_SENTENCE);
    }
}
