//! By what the host writes a format's failures, and its own refusals in the format's words.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A template of what a client reads when something is refused. docs/PLUGINS.md lists its placeholders.
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

/// Kinds of codes: the host's by where they stand in a plain error, and the format's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// The host's that stand in `error`.
    Error,
    /// The host's that stand in `code`.
    Code,
    /// The host's that stand in `reason_code`.
    ReasonCode,
    /// The format's own.
    Own,
}

/// A refusal of the host's in the format's words. What is not said is the host's.
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
    /// A body: an object with placeholders in its texts, or one text.
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

    /// The body's media type: `application/json`, of a text `text/plain; charset=utf-8`, if not said.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.content_type = Some(media_type.into());
        self
    }

    /// One item of the list that stands for `{problems}`.
    pub fn problem(mut self, problem: Value) -> Self {
        self.problem = problem;
        self
    }

    /// Members that the body has besides for codes of this kind, from an object.
    pub fn members(mut self, kind: CodeKind, members: Value) -> Self {
        self.members.insert(kind, object(members));
        self
    }

    /// The members of a single problem's detail stand in the body too, where it has none of their names.
    pub fn detail_at_top(mut self) -> Self {
        self.detail_at_top = true;
        self
    }

    /// Words for a refusal of the host's: by its name or code, by a status (`404`), or by all of a hundred (`4xx`). The first of these
    /// that is there counts.
    pub fn refusal(mut self, which: impl Into<String>, words: RefusalWords) -> Self {
        self.refusals.insert(which.into(), words);
        self
    }
}

impl RefusalWords {
    /// A code and a message; placeholders are `{host_code}`, `{host_code_lower}`, `{host_code_upper}` and `{sentence}`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), message: Some(message.into()), ..Self::default() }
    }

    /// A code, with the host's sentence.
    pub fn code(code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::default() }
    }

    /// Another status than the host's.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Members that the body has besides, from an object.
    pub fn members(mut self, members: Value) -> Self {
        self.members = object(members);
        self
    }
}

/// The members of an object; of anything else there are none.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
