//! How a format's errors look on the wire: a template by which every refusal is written, the host's own among them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::template::{check, check_text};

/// What may stand in a body. `problems` is the list that `problem` is the template of.
const OF_BODY: &[&str] = &[
    "code",
    "code_lower",
    "code_upper",
    "host_code",
    "host_code_lower",
    "host_code_upper",
    "message",
    "sentence",
    "detail",
    "status",
    "title",
    "request_id",
    "problems",
];
/// What may stand in a problem.
const OF_PROBLEM: &[&str] = &["code", "code_lower", "code_upper", "message", "detail", "status", "title"];
/// What may stand in the words of a refusal of the host's.
const OF_WORDS: &[&str] = &["host_code", "host_code_lower", "host_code_upper", "sentence"];
/// Refusals that a description has words for, at most.
const MAX_REFUSALS: usize = 256;

/// By what a format's errors are written.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ErrorTemplate {
    /// JSON with placeholders in its texts. One text alone is sent as it is and not as JSON.
    pub body: Value,
    /// The body's media type: `application/json`, of a text `text/plain; charset=utf-8`, where nothing is said.
    #[serde(default)]
    pub content_type: Option<String>,
    /// One item of what stands for `{problems}`.
    #[serde(default)]
    pub problem: Value,
    /// Members that the body has besides, which replace those of their names, by what kind of code it is.
    #[serde(default)]
    pub members: PlacedMembers,
    /// Whether the members of a single problem's `detail` stand in the body, where it has none of their names.
    #[serde(default)]
    pub detail_at_top: bool,
    /// The host's refusals in the format's words: by the host's name or code of one, by a status, as `404`, or by all of a
    /// hundred, as `4xx`; the first of these that is there counts. Without words, code and sentence are the host's.
    #[serde(default)]
    pub refusals: BTreeMap<String, RefusalWords>,
    /// Kinds of the plugin's own codes, from the description's `own_codes`; what is not there is `own`.
    #[serde(skip)]
    pub own_codes: BTreeMap<String, CodeKind>,
}

/// Members of a body that are there for one kind of code.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PlacedMembers {
    /// For the host's codes that stand in `error` by the specification.
    #[serde(default)]
    pub error: Map<String, Value>,
    /// For those that stand in `code`.
    #[serde(default)]
    pub code: Map<String, Value>,
    /// For those that stand in `reason_code`.
    #[serde(default)]
    pub reason_code: Map<String, Value>,
    /// For codes that are the plugin's own.
    #[serde(default)]
    pub own: Map<String, Value>,
}

/// Which kind of code one is, and so which members go with it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// One that stands in `error`.
    Error,
    /// One that stands in `code`.
    Code,
    /// One that stands in `reason_code`.
    ReasonCode,
    /// One of the plugin's own.
    Own,
}

impl PlacedMembers {
    /// Those for this kind of code.
    #[must_use]
    pub fn of(&self, kind: CodeKind) -> &Map<String, Value> {
        match kind {
            CodeKind::Error => &self.error,
            CodeKind::Code => &self.code,
            CodeKind::ReasonCode => &self.reason_code,
            CodeKind::Own => &self.own,
        }
    }
}

/// A refusal of the host's in a format's words. What is not said is the host's.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RefusalWords {
    /// The status.
    #[serde(default)]
    pub status: Option<u16>,
    /// The code, which may have placeholders.
    #[serde(default)]
    pub code: Option<String>,
    /// The message, which may have placeholders.
    #[serde(default)]
    pub message: Option<String>,
    /// Members that the body has besides.
    #[serde(default)]
    pub members: Map<String, Value>,
}

impl ErrorTemplate {
    /// The words for the refusal of these names, the most exact first, and of this status.
    #[must_use]
    pub fn words(&self, names: &[&str], status: u16) -> Option<&RefusalWords> {
        let named = names.iter().find_map(|name| self.refusals.get(*name));
        named
            .or_else(|| self.refusals.get(&status.to_string()))
            .or_else(|| self.refusals.get(&format!("{}xx", status / 100)))
    }

    /// The media type of what is written by it.
    #[must_use]
    pub fn content_type(&self) -> &str {
        let usual = if self.body.is_string() { "text/plain; charset=utf-8" } else { "application/json" };
        self.content_type.as_deref().unwrap_or(usual)
    }

    /// Whether what is written by it has the members of RFC 9457, so that it may be sent as `application/problem+json`.
    #[must_use]
    pub fn is_problem_details(&self) -> bool {
        let has = |name: &&str| self.body.get(name).is_some();
        self.content_type() == "application/json" && ["type", "title", "status", "detail"].iter().all(has)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if !(self.body.is_string() || self.body.is_object()) {
            return Err("errors.body must be an object or a text".to_owned());
        }
        check("errors.body", &self.body, OF_BODY)?;
        if !http::HeaderValue::from_str(self.content_type()).is_ok_and(|value| !value.is_empty()) {
            return Err("errors.content_type must be a media type".to_owned());
        }
        check("errors.problem", &self.problem, OF_PROBLEM)?;
        for members in [&self.members.error, &self.members.code, &self.members.reason_code, &self.members.own]
        {
            members.values().try_for_each(|member| check("errors.members", member, OF_BODY))?;
        }
        if self.refusals.len() > MAX_REFUSALS {
            return Err(format!("errors.refusals must be at most {MAX_REFUSALS}"));
        }
        self.refusals.iter().try_for_each(|(name, words)| words.validate(&format!("errors.refusals.{name}")))
    }
}

impl RefusalWords {
    pub(super) fn validate(&self, what: &str) -> Result<(), String> {
        if !self.status.is_none_or(|status| (400..600).contains(&status)) {
            return Err(format!("{what}.status must be 400 to 599"));
        }
        for text in [&self.code, &self.message].into_iter().flatten() {
            check_text(what, text, OF_WORDS)?;
        }
        self.members.values().try_for_each(|member| check(what, member, OF_BODY))
    }
}

impl Default for ErrorTemplate {
    /// One object with `error`, and `code` or `reason_code` where the specification has them: what a format gets that says nothing,
    /// and what is answered where no format is known.
    fn default() -> Self {
        let text = |placeholder: &str| Value::String(placeholder.to_owned());
        let members = |members: &[(&str, &str)]| -> Map<String, Value> {
            members.iter().map(|(name, placeholder)| ((*name).to_owned(), text(placeholder))).collect()
        };
        let body = members(&[
            ("error", "{code}"),
            ("message", "{message}"),
            ("request_id", "{request_id}"),
            ("type", "about:blank"),
            ("title", "{title}"),
            ("status", "{status}"),
            ("detail", "{message}"),
        ]);
        Self {
            body: Value::Object(body),
            content_type: None,
            problem: Value::Null,
            members: PlacedMembers {
                code: members(&[("error", "{code_lower}"), ("code", "{code}")]),
                reason_code: members(&[("error", "{message}"), ("reason_code", "{code}")]),
                ..PlacedMembers::default()
            },
            detail_at_top: true,
            refusals: BTreeMap::new(),
            own_codes: BTreeMap::new(),
        }
    }
}
