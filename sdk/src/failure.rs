//! A refusal in the format's own words.

use crate::Error;

/// A refusal: status 400 to 599 and what is wrong. The host gives it its shape on the wire, and a 401 its challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 400 to 599.
    pub status: u16,
    /// Header fields besides those that the host sets; names in lower case.
    pub headers: Vec<(String, String)>,
    /// At least one.
    pub problems: Vec<Problem>,
    /// For the log alone: what went wrong inside. Never sent.
    pub internal: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A word of the format's protocol or of the host's catalogue, as `not_found`.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// Empty, or a JSON object.
    pub detail: String,
}

impl Failure {
    /// A refusal with one problem.
    pub fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        let problem = Problem { code: code.into(), message: message.into(), detail: String::new() };
        Self { status, headers: Vec::new(), problems: vec![problem], internal: None }
    }

    /// 400 `invalid_request`: what was sent makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", message)
    }

    /// 403 `forbidden`: the format's own rules refuse it, whoever asks.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message)
    }

    /// 404 `not_found`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "not_found", message)
    }

    /// 405 `method_not_allowed`, with the methods that are in `Allow`.
    pub fn method_not_allowed(allow: &str) -> Self {
        Self::new(405, "method_not_allowed", format!("Not possible here; allowed: {allow}"))
            .header("allow", allow)
    }

    /// 409 `conflict`: it changed meanwhile; what is there now has to be looked at first.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "conflict", message)
    }

    /// 409 `version_already_exists`: Overwrite Protection.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(409, "version_already_exists", message)
    }

    /// 503 `busy`, to be tried again after a second: others were faster each time. `what` is what they change, as in `the same
    /// package`.
    pub fn busy(what: &str) -> Self {
        Self::new(503, "busy", format!("Others are changing {what} right now; try again"))
            .header("retry-after", "1")
    }

    /// 413 `file_too_large`.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "file_too_large", message)
    }

    /// 502 `upstream_unavailable`: an upstream gives no answer, or none that can be used. `why`
    /// says what happened, at which address, as in `status 500 for simple/six/`. It holds no query,
    /// which may be a secret.
    pub fn unusable_upstream(why: impl std::fmt::Display) -> Self {
        Self::new(
            502,
            "upstream_unavailable",
            format!("The upstream repository gives no usable answer: {why}"),
        )
    }

    /// 500 `internal_error`: `text` goes to the log, the client is told nothing of it.
    pub fn internal(text: impl Into<String>) -> Self {
        let failure = Self::new(500, "internal_error", "Internal server error");
        Self { internal: Some(text.into()), ..failure }
    }

    /// Another code, where the protocol has a word of its own for it.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.code = code.into();
        }
        self
    }

    /// A detail of the last problem: a JSON object.
    pub fn detail(mut self, detail: &serde_json::Value) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.detail = detail.to_string();
        }
        self
    }

    /// One more problem.
    pub fn and(mut self, code: impl Into<String>, message: impl Into<String>) -> Self {
        self.problems.push(Problem { code: code.into(), message: message.into(), detail: String::new() });
        self
    }

    /// A header field; `name` in lower case.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// What a handler did not foresee: 500, but for an upstream that gives no usable answer (502
/// `upstream_unavailable`, in the host's words) or too large a one (502), and bytes of a client over a
/// limit (413). Of the others the host's words go to the log alone.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = match &error {
            Error::Unavailable(why) | Error::UpstreamTooLarge { why, .. } => Self::unusable_upstream(why),
            Error::TooLarge(_) => Self::too_large("Larger than what is allowed here"),
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
