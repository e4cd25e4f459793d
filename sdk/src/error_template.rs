//! Templates for error responses: the format's failures, and the host's refusals in the format's
//! words.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Template of an error response. docs/plugins/errors.md lists its placeholders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorTemplate {
    body: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Value::is_null")]
    problem: Value,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<CodeKind, Map<String, Value>>,
    detail_at_top: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refusals: BTreeMap<String, RefusalWords>,
}

/// Kind of an error code. Codes of the host have three kinds, by the member of a plain error that
/// holds the code. Codes of the format are a kind of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// A code of the host in `error`.
    Error,
    /// A code of the host in `code`.
    Code,
    /// A code of the host in `reason_code`.
    ReasonCode,
    /// A code of the format.
    Own,
}

/// Words of the format for a refusal of the host. The host uses its own words for everything that
/// is not set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RefusalWords {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    members: Map<String, Value>,
}

impl ErrorTemplate {
    /// Creates a template from a body: an object with placeholders in its texts, or a single text.
    pub fn new(body: Value) -> Self {
        Self {
            body,
            content_type: None,
            problem: Value::Null,
            members: BTreeMap::new(),
            detail_at_top: false,
            refusals: BTreeMap::new(),
        }
    }

    /// Sets the media type of the body. The default is `application/json`, or `text/plain;
    /// charset=utf-8` for a text.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.content_type = Some(media_type.into());
        self
    }

    /// Sets the template for one item of the list that replaces `{problems}`.
    pub fn problem(mut self, problem: Value) -> Self {
        self.problem = problem;
        self
    }

    /// Adds members of an object to the body for codes of this kind.
    pub fn members(mut self, kind: CodeKind, members: Value) -> Self {
        self.members.insert(kind, object(members));
        self
    }

    /// Copies the members of a single problem's detail into the body, unless the body has members
    /// of the same name.
    pub fn detail_at_top(mut self) -> Self {
        self.detail_at_top = true;
        self
    }

    /// Sets the words for a refusal of the host. `which` is the refusal's name or code, a status
    /// (`404`) or a class (`4xx`). The most specific match wins, in that order.
    pub fn refusal(mut self, which: impl Into<String>, words: RefusalWords) -> Self {
        self.refusals.insert(which.into(), words);
        self
    }
}

impl RefusalWords {
    /// Creates words with a code and a message. Placeholders are `{host_code}`,
    /// `{host_code_lower}`, `{host_code_upper}` and `{sentence}`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), message: Some(message.into()), ..Self::default() }
    }

    /// Creates words with a code that keep the host's sentence.
    pub fn code(code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::default() }
    }

    /// Replaces the status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds members of an object to the body.
    pub fn members(mut self, members: Value) -> Self {
        self.members = object(members);
        self
    }
}

/// Returns the members of an object; empty for any other value.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
