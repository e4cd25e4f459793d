//! Template of a format's errors, which also defines the form of the host's own refusals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::template::{check, check_text};

/// Placeholders that a body may contain. `problems` is the list of items made from `problem`.
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
/// Placeholders that a problem may contain.
const OF_PROBLEM: &[&str] = &["code", "code_lower", "code_upper", "message", "detail", "status", "title"];
/// Placeholders that the words of a host refusal may contain.
const OF_WORDS: &[&str] = &["host_code", "host_code_lower", "host_code_upper", "sentence"];
/// Most refusals that a description may define.
const MAX_REFUSALS: usize = 256;

/// Template of a format's errors.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ErrorTemplate {
    /// JSON with placeholders in its strings. A single string is sent as plain text instead of
    /// JSON.
    pub body: Value,
    /// The body's media type. The default is `application/json`, or `text/plain; charset=utf-8` for
    /// a string.
    #[serde(default)]
    pub content_type: Option<String>,
    /// Template of one item of `{problems}`.
    #[serde(default)]
    pub problem: Value,
    /// Additional members of the body, by kind of code. They replace members of the same name.
    #[serde(default)]
    pub members: PlacedMembers,
    /// True if the members of a single problem's `detail` are copied into the body, unless the body
    /// has members of the same name.
    #[serde(default)]
    pub detail_at_top: bool,
    /// The host's refusals in the format's words. A key is a name or code of the host, a status
    /// such as `404`, or a class such as `4xx`; the first match applies. Without a match, the
    /// host's own code and sentence apply.
    #[serde(default)]
    pub refusals: BTreeMap<String, RefusalWords>,
    /// Kinds of the plugin's own codes, from the description's `own_codes`. The kind of any other
    /// code of the plugin is `own`.
    #[serde(skip)]
    pub own_codes: BTreeMap<String, CodeKind>,
}

/// Members of a body that depend on the kind of code.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PlacedMembers {
    /// Members for the host's codes that the specification puts into `error`.
    #[serde(default)]
    pub error: Map<String, Value>,
    /// Members for codes in `code`.
    #[serde(default)]
    pub code: Map<String, Value>,
    /// Members for codes in `reason_code`.
    #[serde(default)]
    pub reason_code: Map<String, Value>,
    /// Members for the plugin's own codes.
    #[serde(default)]
    pub own: Map<String, Value>,
}

/// Kind of a code, which selects the members of the body.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// A code in the member `error`.
    Error,
    /// A code in the member `code`.
    Code,
    /// A code in the member `reason_code`.
    ReasonCode,
    /// A code of the plugin's own.
    Own,
}

impl PlacedMembers {
    /// Returns the members for this kind of code.
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

/// A refusal of the host in a format's words. Missing fields keep the host's values.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RefusalWords {
    #[serde(default)]
    pub status: Option<u16>,
    /// The code, which may contain placeholders.
    #[serde(default)]
    pub code: Option<String>,
    /// The message, which may contain placeholders.
    #[serde(default)]
    pub message: Option<String>,
    /// Additional members of the body.
    #[serde(default)]
    pub members: Map<String, Value>,
}

impl ErrorTemplate {
    /// Returns the words for a refusal with these names, the most specific first, and this status.
    #[must_use]
    pub fn words(&self, names: &[&str], status: u16) -> Option<&RefusalWords> {
        let named = names.iter().find_map(|name| self.refusals.get(*name));
        named
            .or_else(|| self.refusals.get(&status.to_string()))
            .or_else(|| self.refusals.get(&format!("{}xx", status / 100)))
    }

    /// Media type of the written body.
    #[must_use]
    pub fn content_type(&self) -> &str {
        let usual = if self.body.is_string() { "text/plain; charset=utf-8" } else { "application/json" };
        self.content_type.as_deref().unwrap_or(usual)
    }

    /// Returns true if the body has the members of RFC 9457, so that it may be sent as
    /// `application/problem+json`.
    #[must_use]
    pub fn is_problem_details(&self) -> bool {
        let has = |name: &&str| self.body.get(name).is_some();
        self.content_type() == "application/json" && ["type", "title", "status", "detail"].iter().all(has)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if !(self.body.is_string() || self.body.is_object()) {
            return Err("errors.body must be an object or a string".to_owned());
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
            return Err(format!("errors.refusals may have at most {MAX_REFUSALS} entries"));
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
    /// One object with `error`, and with `code` or `reason_code` where the specification has them.
    /// This is the default of a format, and the answer if no format is known.
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
