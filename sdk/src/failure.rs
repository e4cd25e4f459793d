//! Error responses of a format.

use crate::Error;

/// Refusal with a status of 400 to 599 and its problems. The host writes the response body, and
/// adds the challenge to a 401.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Status, 400 to 599.
    pub status: u16,
    /// Additional header fields; names in lower case. The host sets its own fields.
    pub headers: Vec<(String, String)>,
    /// Problems; at least one.
    pub problems: Vec<Problem>,
    /// Internal cause, for the log. It is never sent to the client.
    pub internal: Option<String>,
}

/// One reason for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Code of the format's protocol or of the host's catalogue, for example `not_found`.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// Details as a JSON object, or empty.
    pub detail: String,
}

impl Failure {
    /// Creates a refusal with one problem.
    pub fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        let problem = Problem { code: code.into(), message: message.into(), detail: String::new() };
        Self { status, headers: Vec::new(), problems: vec![problem], internal: None }
    }

    /// 400 `invalid_request`: the request is malformed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", message)
    }

    /// 403 `forbidden`: the format's own rules forbid the request to every caller.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message)
    }

    /// 404 `not_found`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "not_found", message)
    }

    /// 405 `method_not_allowed`, with the allowed methods in `Allow`.
    pub fn method_not_allowed(allow: &str) -> Self {
        Self::new(
            405,
            "method_not_allowed",
            format!("Method not allowed for this resource; allowed: {allow}"),
        )
        .header("allow", allow)
    }

    /// 409 `conflict`: the resource has changed; the client must read it again first.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "conflict", message)
    }

    /// 409 `version_already_exists`: overwrite protection.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(409, "version_already_exists", message)
    }

    /// 503 `busy`: a concurrent change won each attempt, and the client should retry after a
    /// second. `what` names the thing that is changed, for example `the same package`.
    pub fn busy(what: &str) -> Self {
        Self::new(503, "busy", format!("Concurrent requests are changing {what}; try again"))
            .header("retry-after", "1")
    }

    /// 413 `file_too_large`: the file exceeds a limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "file_too_large", message)
    }

    /// 502 `upstream_unavailable`: the upstream's response is missing or unusable. `why` says what
    /// happened and at which address, for example `status 500 for simple/six/`. It must not contain
    /// a query, because a query can hold a secret.
    pub fn unusable_upstream(why: impl std::fmt::Display) -> Self {
        Self::new(
            502,
            "upstream_unavailable",
            format!("The upstream repository did not give a usable response: {why}"),
        )
    }

    /// 500 `internal_error`: `text` goes to the log only; the client sees a generic message.
    pub fn internal(text: impl Into<String>) -> Self {
        let failure = Self::new(500, "internal_error", "Internal server error");
        Self { internal: Some(text.into()), ..failure }
    }

    /// Replaces the code, if the protocol has its own code for this problem.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.code = code.into();
        }
        self
    }

    /// Adds details to the last problem, as a JSON object.
    pub fn detail(mut self, detail: &serde_json::Value) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.detail = detail.to_string();
        }
        self
    }

    /// Adds a problem.
    pub fn and(mut self, code: impl Into<String>, message: impl Into<String>) -> Self {
        self.problems.push(Problem { code: code.into(), message: message.into(), detail: String::new() });
        self
    }

    /// Adds a header field; `name` is in lower case.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Converts an error that the handler did not handle. An unusable upstream response, or one that is
/// too large, becomes 502 `upstream_unavailable` with the host's text. Content of the client that
/// exceeds a limit becomes 413. Every other error becomes 500, and the host's text goes to the log
/// only.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = match &error {
            Error::Unavailable(why) | Error::UpstreamTooLarge { why, .. } => Self::unusable_upstream(why),
            Error::TooLarge(_) => Self::too_large("The content is larger than allowed"),
            Error::Denied | Error::Invalid(_) | Error::Other(_) => return Self::internal(error.to_string()),
        };
        Self { internal: Some(error.to_string()), ..failure }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Error::from(error).into()
    }
}
