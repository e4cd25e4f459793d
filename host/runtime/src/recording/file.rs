//! A recording as a file: one JSON object with its own version. docs/plugins/recordings.md
//! describes it. This module uses no other module of the crate, so that the fuzzer can include it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the file format.
const VERSION: u32 = 1;
/// Most bytes of a file.
const MOST: usize = 64 << 20;
/// Most calls in a file: a request's `route`, and the `handle` that continued in its instance.
const MAX_CALLS: usize = 2;
/// Most host calls of one call.
pub(crate) const MAX_IMPORTS: usize = 100_000;

/// One call of a plugin, with the earlier call in the same instance if there was one. A recording
/// contains the input, all host calls with their answers, and the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Version of the file format.
    pub packhouse_recording: u32,
    pub format: String,
    /// Digest of the component that ran: `sha256:` and hexadecimal digits.
    pub component: String,
    pub version: String,
    /// Start of the first call, in ms since 1970.
    pub recorded_at: u64,
    /// The request, without credentials. For a call outside of a request, everything except the id
    /// is empty.
    pub request: RecordedRequest,
    pub limits: RecordedLimits,
    /// Source of WASI's clock and random numbers, for a component that imports WASI.
    pub wasi: RecordedWasi,
    /// Calls in the order in which they ran.
    pub calls: Vec<RecordedCall>,
    /// Reason why the recording is incomplete and cannot be replayed. None if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A request's head as the plugin received it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// HTTP method in upper case.
    pub method: String,
    pub claim: Option<String>,
    /// Path below the address, one item for each segment.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The address that `path` is below.
    pub address: String,
    pub caller: Option<String>,
    /// The id in the log.
    pub request_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedLimits {
    /// Memory of one instance, in bytes.
    pub memory_bytes: u64,
    pub call_timeout_ms: u64,
    /// Bytes of one host call.
    pub hostcall_bytes: u64,
    /// Handles that may be open at once.
    pub handles: u64,
}

/// Sources of the values that WASI returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedWasi {
    pub seed: u64,
    /// First time that the clocks return, in ms since 1970. Each further reading is a microsecond
    /// later.
    pub clock_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// `route`, `check`, `handle`, or an optional export, written with `_`.
    pub function: String,
    /// Arguments except handles: the kind of `route`, the ids of `judge_versions`.
    pub arguments: Vec<Value>,
    /// Handle of the request, for calls that receive one.
    pub request: Option<u32>,
    /// Target repository of the call.
    pub target: Option<RecordedRepository>,
    /// Other repositories of the call.
    pub others: Vec<RecordedRepository>,
    /// Host calls in their order.
    pub imports: Vec<RecordedImport>,
    pub outcome: RecordedOutcome,
}

/// A repository that a call received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRepository {
    pub handle: u32,
    /// Name as used in addresses.
    pub name: String,
    pub kind: String,
    pub settings: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedImport {
    /// Name of the import, such as `records.repository.get`.
    pub import: String,
    pub arguments: Vec<Value>,
    /// The answer. None if the call ended first.
    pub answer: Option<RecordedAnswer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedAnswer {
    Ok(Value),
    Error(Value),
    /// No answer, because the host ended the call for this reason.
    Stopped(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedOutcome {
    /// The guest's answer: `{"ok": …}`, or `{"refused": …}` with the contract's `failure`. None if
    /// the call ended without one.
    pub answer: Option<Value>,
    /// Reason why there is no answer. None if there is one.
    pub failed: Option<RecordedFailure>,
}

/// Reason why a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFailure {
    /// One word, as in metrics: `trap`, `deadline`, `bad_answer`.
    pub kind: String,
    pub message: String,
}

impl RecordedOutcome {
    /// Returns true if the plugin's maintainer should look at it: no answer, or a status of 500 or
    /// above.
    pub fn is_failure(&self) -> bool {
        self.failed.is_some() || self.status().is_some_and(|status| status >= 500)
    }

    /// HTTP status of the answer, if it has one.
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

    /// Parses a file. The error is a sentence that says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Recording, String> {
        if bytes.len() > MOST {
            return Err(format!("it has {} bytes; a recording may have at most {MOST}", bytes.len()));
        }
        /// The file's version, which `parse` reads first, because other versions may differ in
        /// everything else.
        #[derive(Deserialize)]
        struct FileVersion {
            packhouse_recording: u32,
        }
        let FileVersion { packhouse_recording: version } =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not a recording: {error}"))?;
        if version != VERSION {
            return Err(format!(
                "it is a recording of version {version}, but this program reads version {VERSION}"
            ));
        }
        let recording: Recording =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not a recording: {error}"))?;
        recording.check().map(|()| recording)
    }

    fn check(&self) -> Result<(), String> {
        if self.calls.is_empty() || self.calls.len() > MAX_CALLS {
            return Err(format!("it has {} calls; a recording must have 1 to {MAX_CALLS}", self.calls.len()));
        }
        if self.calls.iter().any(|call| call.imports.len() > MAX_IMPORTS) {
            return Err(format!("one of its calls has more than {MAX_IMPORTS} host calls"));
        }
        if is_sha256(&self.component) {
            Ok(())
        } else {
            Err(format!("its component {:?} is not a SHA-256 digest", self.component))
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Outcome of the last call.
    pub fn outcome(&self) -> Option<&RecordedOutcome> {
        self.calls.last().map(|call| &call.outcome)
    }

    /// Function of the last call.
    pub fn function(&self) -> &str {
        self.calls.last().map_or("", |call| &call.function)
    }
}

/// Returns true for `sha256:` and 64 digits of lower-case hex.
fn is_sha256(digest: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_digit))
}
