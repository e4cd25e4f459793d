//! A judging call of a policy as a file, and its replay. A policy is a pure function, so a
//! recording needs only its input.

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

/// Version of the file format.
const VERSION: u32 = 1;
/// Most bytes of a file: more than the input of one call.
const MOST: usize = 32 << 20;
/// Most characters of a failure's message.
const MAX_MESSAGE: usize = 2_000;

/// One judging call of a policy's component: its input and its outcome. docs/guides/policies.md
/// describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRecording {
    /// Version of the file format.
    pub packhouse_policy_recording: u32,
    /// Name from the component's description.
    pub policy: String,
    /// Version from the component's description.
    pub version: String,
    /// Digest of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// Start of the call, in ms since 1970.
    pub recorded_at: u64,
    /// Settings of the policy, a JSON object.
    pub settings: Value,
    /// Input that all versions share.
    #[serde(with = "super::context")]
    pub context: PolicyContext,
    pub versions: Vec<PolicyFacts>,
    pub outcome: PolicyOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOutcome {
    /// One ruling for each version, in their order.
    Rulings(Vec<Ruling>),
    /// The call failed without rulings.
    Failure {
        /// One word: `trap`, `deadline`, `memory`, `hostcall_bytes`, `bad_answer`.
        kind: String,
        /// Message for people to read.
        told: String,
    },
}

impl PolicyOutcome {
    /// Outcome of a finished call.
    #[must_use]
    pub fn of(judged: Result<&[Ruling], &CallError>) -> PolicyOutcome {
        match judged {
            Ok(rulings) => PolicyOutcome::Rulings(rulings.to_vec()),
            Err(error) => PolicyOutcome::Failure {
                kind: error.kind().to_owned(),
                told: error.to_string().chars().take(MAX_MESSAGE).collect(),
            },
        }
    }

    /// Outcome in one word: the kind of a failure, or else the strictest ruling.
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

    /// Returns true if some version does not pass.
    #[must_use]
    pub fn refuses(&self) -> bool {
        !matches!(self.word(), "allow" | "warn")
    }
}

impl PolicyRecording {
    /// Records a call of this component. `settings` is its input as JSON.
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

    /// Serializes the recording. Credentials are replaced by words of the same length: words that
    /// begin with one of `hidden`, and values of members with a credential's name. The error says
    /// why there is no file.
    pub fn to_json(&self, hidden: &[String]) -> Result<String, String> {
        let mut all = serde_json::to_value(self).map_err(|error| format!("it cannot be written: {error}"))?;
        hide_words(&mut all, hidden)?;
        let file = all.to_string();
        if file.len() > MOST {
            return Err(format!("it has {} bytes; the limit is {MOST}", file.len()));
        }
        Ok(file)
    }

    /// Parses a file. The error says why the recording cannot be replayed.
    pub fn parse(file: &[u8]) -> Result<PolicyRecording, String> {
        if file.len() > MOST {
            return Err(format!("it has {} bytes; the limit is {MOST}", file.len()));
        }
        let read: PolicyRecording = serde_json::from_slice(file)
            .map_err(|error| format!("it is not a recording of a policy call: {error}"))?;
        if read.packhouse_policy_recording != VERSION {
            let found = read.packhouse_policy_recording;
            return Err(format!("its format version is {found}, but this program reads {VERSION}"));
        }
        if read.versions.len() > MAX_BATCH {
            return Err(format!("it has {} versions; the limit is {MAX_BATCH}", read.versions.len()));
        }
        Ok(read)
    }
}

#[derive(Clone, Debug)]
pub struct PolicyReplayed {
    /// SHA-256 of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// Difference from the recording, for people. None if the outcome is the same.
    pub difference: Option<String>,
    pub outcome: PolicyOutcome,
}

impl fmt::Display for PolicyReplayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.difference {
            Some(difference) => write!(f, "{} judges differently: {difference}", self.component),
            None => write!(f, "{} judges as recorded: {}", self.component, self.outcome.word()),
        }
    }
}

/// Replays the recorded call on a component, under the limits of a server. Errors use this name.
/// `Plugin` states why it is not a policy. A failure of the same kind counts as equal.
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
    let repository = (packhouse_store::RepositoryId(0), recording.context.repository.as_str().into());
    let judged = component
        .judge(&Arc::default(), repository, &settings, &recording.context, &recording.versions)
        .await;
    let outcome = PolicyOutcome::of(judged.as_deref());
    let difference = difference(recording, &outcome);
    Ok(PolicyReplayed { component: component.digest().to_owned(), difference, outcome })
}

fn difference(recording: &PolicyRecording, now: &PolicyOutcome) -> Option<String> {
    let text = |outcome: &PolicyOutcome| match outcome {
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
        (before, now) => Some(format!("recorded: {}; now: {}", text(before), text(now))),
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
    fn a_file_round_trips_without_credentials() {
        let outcome = json!({"rulings": [{"deny": "no"}]});
        let recording = parse(&recorded(&outcome, "pkx_abcdefghijklmnop")).unwrap();
        let file = recording.to_json(&["pkx_".to_owned()]).unwrap();
        assert!(!file.contains("pkx_abcdef") && file.contains("hidden-0-"), "{file}");
        assert_eq!(PolicyRecording::parse(file.as_bytes()).unwrap().outcome, recording.outcome);
        assert!(recording.outcome.refuses() && recording.outcome.word() == "deny");
        let mut newer = recorded(&outcome, "");
        newer["packhouse_policy_recording"] = json!(2);
        assert!(parse(&newer).unwrap_err().contains("version is 2"));
        assert!(PolicyRecording::parse(b"{}").is_err());
    }

    #[test]
    fn a_difference_names_the_version_and_failures_compare_by_kind() {
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
