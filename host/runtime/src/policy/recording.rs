//! A judging call of a policy as a file, and the same call again. A policy is a pure function, so what it was given is all that there is to
//! record.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{MAX_BATCH, PolicyComponent, PolicyContext, PolicyFacts, Ruling};
use crate::boxed;
use crate::compiler::{CompiledFolders, Compiler};
use crate::config::Limits;
use crate::engine::EngineOptions;
use crate::error::{CallError, LoadError};
use crate::recording::hide_words;

/// The version of the form.
const VERSION: u32 = 1;
/// Bytes of a file at most: more than what a component is told in one call.
const MOST: usize = 32 << 20;
/// Characters of what is told of a failure.
const TOLD: usize = 2_000;

/// One judging call of a policy's component: what it was given, and what became of it. docs/POLICIES.md describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRecording {
    /// Version of the form.
    pub packhouse_policy_recording: u32,
    /// What the component calls itself, and its version.
    pub policy: String,
    /// Its own version.
    pub version: String,
    /// Of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// When the call began, in ms since 1970.
    pub recorded_at: u64,
    /// A JSON object.
    pub settings: Value,
    /// What is the same for all versions.
    #[serde(with = "super::context")]
    pub context: PolicyContext,
    /// What is judged.
    pub versions: Vec<PolicyFacts>,
    /// What became of it.
    pub outcome: PolicyOutcome,
}

/// What became of a judging call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOutcome {
    /// One for each version, in their order.
    Rulings(Vec<Ruling>),
    /// It gave none.
    Failure {
        /// A word: `trap`, `deadline`, `memory`, `hostcall_bytes`, `bad_answer`.
        kind: String,
        /// What happened, for people.
        told: String,
    },
}

impl PolicyOutcome {
    /// That of a call.
    #[must_use]
    pub fn of(judged: Result<&[Ruling], &CallError>) -> PolicyOutcome {
        match judged {
            Ok(rulings) => PolicyOutcome::Rulings(rulings.to_vec()),
            Err(error) => PolicyOutcome::Failure {
                kind: error.kind().to_owned(),
                told: error.to_string().chars().take(TOLD).collect(),
            },
        }
    }

    /// In one word: of a failure its kind, else the strictest ruling.
    #[must_use]
    pub fn word(&self) -> &str {
        let rulings = match self {
            PolicyOutcome::Failure { kind, .. } => return kind,
            PolicyOutcome::Rulings(rulings) => rulings,
        };
        let strictness = |ruling: &Ruling| match ruling {
            Ruling::Allow => 0,
            Ruling::Warn(_) => 1,
            Ruling::Hold { .. } => 2,
            Ruling::Deny(_) => 3,
        };
        match rulings.iter().map(strictness).max() {
            None | Some(0) => "allow",
            Some(1) => "warn",
            Some(2) => "hold",
            Some(_) => "deny",
        }
    }

    /// Whether it let something not pass.
    #[must_use]
    pub fn refuses(&self) -> bool {
        !matches!(self.word(), "allow" | "warn")
    }
}

impl PolicyRecording {
    /// Of a call of this component. `settings` are what it was given, in JSON.
    #[must_use]
    pub fn new(
        component: &PolicyComponent,
        settings: &str,
        context: PolicyContext,
        versions: Vec<PolicyFacts>,
        outcome: PolicyOutcome,
    ) -> PolicyRecording {
        PolicyRecording {
            packhouse_policy_recording: VERSION,
            policy: component.description().name.clone(),
            version: component.description().version.clone(),
            component: component.digest().to_owned(),
            recorded_at: context.now,
            settings: serde_json::from_str(settings).unwrap_or_default(),
            context,
            versions,
            outcome,
        }
    }

    /// The file. Words that begin with one of `hidden` are credentials wherever they stand, and so is what stands in a member of a
    /// credential's name: each is replaced by a word of the same length. Says why there is no file.
    pub fn to_json(&self, hidden: &[String]) -> Result<String, String> {
        let mut all = serde_json::to_value(self).map_err(|error| format!("it cannot be written: {error}"))?;
        hide_words(&mut all, hidden)?;
        let file = all.to_string();
        if file.len() > MOST {
            return Err(format!("it has {} bytes, over {MOST}", file.len()));
        }
        Ok(file)
    }

    /// Reads a file. Says why it is none that can be run again.
    pub fn parse(file: &[u8]) -> Result<PolicyRecording, String> {
        if file.len() > MOST {
            return Err(format!("it has {} bytes, over {MOST}", file.len()));
        }
        let read: PolicyRecording = serde_json::from_slice(file)
            .map_err(|error| format!("it is no recording of a policy's call: {error}"))?;
        if read.packhouse_policy_recording != VERSION {
            let found = read.packhouse_policy_recording;
            return Err(format!("its form has version {found}, and this program reads {VERSION}"));
        }
        if read.versions.len() > MAX_BATCH {
            return Err(format!("it has {} versions, over {MAX_BATCH}", read.versions.len()));
        }
        Ok(read)
    }
}

/// What a replay did.
#[derive(Clone, Debug)]
pub struct PolicyReplayed {
    /// SHA-256 of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// Where it did something else than was recorded, for people; none where it did the same.
    pub difference: Option<String>,
    /// What became of it.
    pub outcome: PolicyOutcome,
}

impl fmt::Display for PolicyReplayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.difference {
            Some(difference) => write!(f, "{} judges otherwise: {difference}", self.component),
            None => write!(f, "{} judges as it was recorded: {}", self.component, self.outcome.word()),
        }
    }
}

/// Runs the recorded call on the bytes of a component, which errors call by this name, under the limits of a server. `Plugin` says why it is
/// no policy. A failure counts as the same where it is of the same kind.
#[boxed]
pub async fn replay_policy(
    recording: &PolicyRecording,
    name: &Path,
    component: Bytes,
) -> Result<PolicyReplayed, LoadError> {
    let memory_bytes = Limits::default().memory_bytes;
    let compiler = Compiler::new(&EngineOptions { pool: None, memory_bytes }, CompiledFolders::default())?;
    let component = PolicyComponent::load(&compiler, Arc::new(Semaphore::new(1)), name, component).await?;
    let settings = recording.settings.to_string();
    let whose = (packhouse_store::RepositoryId(0), recording.context.repository.as_str().into());
    let judged =
        component.judge(&Arc::default(), whose, &settings, &recording.context, &recording.versions).await;
    let outcome = PolicyOutcome::of(judged.as_deref());
    let difference = difference(recording, &outcome);
    Ok(PolicyReplayed { component: component.digest().to_owned(), difference, outcome })
}

fn difference(recording: &PolicyRecording, now: &PolicyOutcome) -> Option<String> {
    let told = |outcome: &PolicyOutcome| match outcome {
        PolicyOutcome::Failure { told, .. } => format!("it {told}"),
        PolicyOutcome::Rulings(_) => outcome.word().to_owned(),
    };
    match (&recording.outcome, now) {
        (PolicyOutcome::Failure { kind: before, .. }, PolicyOutcome::Failure { kind, .. })
            if before == kind =>
        {
            None
        }
        (PolicyOutcome::Rulings(before), PolicyOutcome::Rulings(now)) => {
            let differs = |(version, (before, now)): (&PolicyFacts, (&Ruling, &Ruling))| {
                (before != now).then(|| {
                    format!("{} {}: recorded {before:?}, now {now:?}", version.name, version.version)
                })
            };
            let count = (before.len() != now.len())
                .then(|| format!("recorded {} rulings, now {}", before.len(), now.len()));
            recording.versions.iter().zip(before.iter().zip(now)).find_map(differs).or(count)
        }
        (before, now) => Some(format!("recorded: {}; now: {}", told(before), told(now))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(outcome: &Value, license: &str) -> Value {
        json!({
            "packhouse_policy_recording": 1, "policy": "p", "version": "1", "component": "sha256:0", "recorded_at": 5, "settings": {},
            "context": {
                "purpose": "Publish", "now": 5, "format": "f", "repository": "r", "kind": "hosted", "upstream": null, "caller": null,
                "names_in_use": [],
            },
            "versions": [{
                "name": "a", "version": "1", "published": null, "state": "", "license": license, "files": [], "properties": [],
                "provenance": [], "advisories": [],
            }],
            "outcome": outcome,
        })
    }

    fn parse(value: &Value) -> Result<PolicyRecording, String> {
        PolicyRecording::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_holds_no_credential() {
        let outcome = json!({"rulings": [{"deny": "no"}]});
        let recording = parse(&recorded(&outcome, "pkx_abcdefghijklmnop")).unwrap();
        let file = recording.to_json(&["pkx_".to_owned()]).unwrap();
        assert!(!file.contains("pkx_abcdef") && file.contains("hidden-0-"), "{file}");
        assert_eq!(PolicyRecording::parse(file.as_bytes()).unwrap().outcome, recording.outcome);
        assert!(recording.outcome.refuses() && recording.outcome.word() == "deny");
        let mut newer = recorded(&outcome, "");
        newer["packhouse_policy_recording"] = json!(2);
        assert!(parse(&newer).unwrap_err().contains("version 2"));
        assert!(PolicyRecording::parse(b"{}").is_err());
    }

    #[test]
    fn where_it_differs_is_the_version_and_a_failure_is_its_kind() {
        let recording = parse(&recorded(&json!({"rulings": [{"deny": "no"}]}), "")).unwrap();
        assert_eq!(difference(&recording, &recording.outcome), None);
        let now = PolicyOutcome::Rulings(vec![Ruling::Allow]);
        assert_eq!(difference(&recording, &now).unwrap(), "a 1: recorded Deny(\"no\"), now Allow");
        assert!(!now.refuses());
        let failed = PolicyOutcome::of(Err(&CallError::Trap("here".to_owned())));
        assert!(difference(&recording, &failed).unwrap().contains("now: it trapped: here"));
        let trapped = json!({"failure": {"kind": "trap", "told": "elsewhere"}});
        assert_eq!(difference(&parse(&recorded(&trapped, "")).unwrap(), &failed), None);
    }
}
