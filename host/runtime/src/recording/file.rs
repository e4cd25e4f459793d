//! A recording as a file: one JSON object with a version of its own. docs/PLUGINS.md describes it. It needs nothing else of this crate, so
//! that the fuzzer can include it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the form.
const VERSION: u32 = 1;
/// Bytes of a file at most.
const MOST: usize = 64 << 20;
/// Calls in a file: a request's `route`, and the `handle` that went on in its instance.
const MAX_CALLS: usize = 2;
/// Questions to the host in one call at most.
pub(crate) const MAX_IMPORTS: usize = 100_000;

/// One call of a plugin, with the call before it in the same instance: what it was given, what it asked the host and was told, and what it
/// answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Version of the form.
    pub packhouse_recording: u32,
    /// The plugin's format.
    pub format: String,
    /// Of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    /// The plugin's own version.
    pub version: String,
    /// When the first call began, in ms since 1970.
    pub recorded_at: u64,
    /// The request that it was for, without a credential; of a call that is for none, all but the id is empty.
    pub request: RecordedRequest,
    /// What bounded it.
    pub limits: RecordedLimits,
    /// What WASI's clock and random numbers were made of, for a component that imports those.
    pub wasi: RecordedWasi,
    /// In their order.
    pub calls: Vec<RecordedCall>,
    /// Why it is not whole, and so cannot be replayed; none where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A request's head as the plugin saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// In upper case.
    pub method: String,
    /// The claim that matched.
    pub claim: Option<String>,
    /// Below the address, one item a segment.
    pub path: Vec<String>,
    /// In their order.
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// What `path` is below.
    pub address: String,
    /// The name of who asked.
    pub caller: Option<String>,
    /// As it stands in the log.
    pub request_id: String,
}

/// The limits of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedLimits {
    /// Of one instance, in bytes.
    pub memory_bytes: u64,
    /// Of one call.
    pub call_timeout_ms: u64,
    /// Of one question to the host.
    pub hostcall_bytes: u64,
    /// Open at one time.
    pub handles: u64,
}

/// What WASI gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedWasi {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Time of its clocks when they were asked first, in ms since 1970; each further question is told a microsecond more.
    pub clock_ms: u64,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// `route`, `check`, `handle`, or one of the optional exports, with `_`.
    pub function: String,
    /// Its arguments but for handles: the kind of `route`, the ids of `judge_versions`.
    pub arguments: Vec<Value>,
    /// The handle on the request; none of a call that gets none.
    pub request: Option<u32>,
    /// The repository that it is about.
    pub target: Option<RecordedRepository>,
    /// The others that it was handed.
    pub others: Vec<RecordedRepository>,
    /// What it asked the host, in order.
    pub imports: Vec<RecordedImport>,
    /// How it ended.
    pub outcome: RecordedOutcome,
}

/// A repository that a call was handed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRepository {
    /// Its handle.
    pub handle: u32,
    /// As it stands in addresses.
    pub name: String,
    /// `hosted`, `proxy` or `group`.
    pub kind: String,
    /// A JSON object.
    pub settings: String,
}

/// A question to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedImport {
    /// As `records.repository.get`.
    pub import: String,
    /// What was asked.
    pub arguments: Vec<Value>,
    /// What was told; none where the call ended before.
    pub answer: Option<RecordedAnswer>,
}

/// What the host told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedAnswer {
    /// What was asked for.
    Ok(Value),
    /// The contract's `error`.
    Error(Value),
    /// Nothing: the host ended the call, and why.
    Stopped(String),
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedOutcome {
    /// What it answered: `{"ok": …}`, or `{"refused": …}` with the contract's `failure`; none where it did not get so far.
    pub answer: Option<Value>,
    /// Why that is none; none where it is one.
    pub failed: Option<RecordedFailure>,
}

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFailure {
    /// One word, as in metrics: `trap`, `deadline`, `bad_answer`.
    pub kind: String,
    /// In words.
    pub message: String,
}

impl RecordedOutcome {
    /// Whether whoever looks after the plugin would want to know: it gave no answer, or one of 500 or above.
    pub fn is_failure(&self) -> bool {
        self.failed.is_some() || self.status().is_some_and(|status| status >= 500)
    }

    /// The HTTP status of its answer; none of one that has none.
    pub fn status(&self) -> Option<u64> {
        let answer = self.answer.as_ref()?;
        answer.get("ok").or_else(|| answer.get("refused"))?.get("status")?.as_u64()
    }
}

/// One line for lists: `trap`, `500`, `ok`.
impl std::fmt::Display for RecordedOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.failed, self.status()) {
            (Some(failed), _) => f.write_str(&failed.kind),
            (None, Some(status)) => write!(f, "{status}"),
            (None, None) => f.write_str("ok"),
        }
    }
}

impl Recording {
    /// The version that this program writes.
    pub const VERSION: u32 = VERSION;

    /// Reads a file. The error is a sentence that says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Recording, String> {
        if bytes.len() > MOST {
            return Err(format!("it has {} bytes, and a recording has at most {MOST}", bytes.len()));
        }
        /// What is looked at first: of another version the rest may be anything.
        #[derive(Deserialize)]
        struct Version {
            packhouse_recording: u32,
        }
        let Version { packhouse_recording: version } =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no recording: {error}"))?;
        if version != VERSION {
            return Err(format!(
                "it is a recording of version {version}, and this program reads version {VERSION}"
            ));
        }
        let recording: Recording =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no recording: {error}"))?;
        recording.check().map(|()| recording)
    }

    fn check(&self) -> Result<(), String> {
        if self.calls.is_empty() || self.calls.len() > MAX_CALLS {
            return Err(format!("it has {} calls, and a recording has 1 to {MAX_CALLS}", self.calls.len()));
        }
        if self.calls.iter().any(|call| call.imports.len() > MAX_IMPORTS) {
            return Err(format!("a call of it has more than {MAX_IMPORTS} questions"));
        }
        if is_sha256(&self.component) {
            Ok(())
        } else {
            Err(format!("its component {:?} is no SHA-256", self.component))
        }
    }

    /// As a file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// How its last call ended.
    pub fn outcome(&self) -> Option<&RecordedOutcome> {
        self.calls.last().map(|call| &call.outcome)
    }

    /// The function of its last call.
    pub fn function(&self) -> &str {
        self.calls.last().map_or("", |call| &call.function)
    }
}

/// Whether this is `sha256:` and 64 digits of lower-case hex.
fn is_sha256(digest: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_digit))
}
