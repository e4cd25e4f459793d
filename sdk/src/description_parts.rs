//! Parts of a description.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::error_template::RefusalWords;
use crate::exchange::Exchange;

/// Size limits of the format.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_manifest_bytes: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, NamedLimit>,
}

/// Limit that an intent may name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NamedLimit {
    pub max_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess: Option<RefusalWords>,
}

/// Endpoints where clients exchange ID tokens of their build service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TrustedPublishing {
    pub paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// Form of the format's package URLs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Purl {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub joint: &'static str,
}

/// Records that hold tags.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TagKeys {
    pub prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    pub member: String,
}

/// Client that shows the sentence of a refusal in one place only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SentenceClient {
    pub user_agent: String,
    pub place: SentencePlace,
}

/// Place where a client shows the sentence of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SentencePlace {
    /// The reason phrase of HTTP/1.1. A 404 without a sentence of its own keeps the usual phrase.
    Reason,
    /// The whole body, which is plain text for this client.
    Body,
    /// The response header of this name, in addition to the usual body. The name is in lower case
    /// and ends with `-notice`.
    Header(String),
}

/// Token service of the format: its path, and the word for each action in a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenService {
    path: String,
    read: String,
    publish: String,
    delete: String,
}

impl TokenService {
    /// Creates a service at this path, for example `/v2/token`, with the words `pull`, `push` and
    /// `delete`.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            read: "pull".to_owned(),
            publish: "push".to_owned(),
            delete: "delete".to_owned(),
        }
    }

    /// Sets other words for reading, publishing and deleting; they consist of lower-case letters.
    pub fn words(mut self, [read, publish, delete]: [&str; 3]) -> Self {
        (self.read, self.publish, self.delete) = (read.to_owned(), publish.to_owned(), delete.to_owned());
        self
    }
}

/// Setting of each repository of the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    kind: &'static str,
    default: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    summary: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repository_kinds: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

impl Setting {
    /// A boolean setting; `summary` is one line for people.
    pub fn boolean(default: bool, summary: impl Into<String>) -> Self {
        Self::new("boolean", default.into(), summary)
    }

    /// A non-negative integer.
    pub fn integer(default: u64, summary: impl Into<String>) -> Self {
        Self::new("integer", default.into(), summary)
    }

    /// A duration in seconds. The portal also offers minutes, hours and days.
    pub fn seconds(default: u64, summary: impl Into<String>) -> Self {
        Self { unit: Some("seconds"), ..Self::integer(default, summary) }
    }

    /// A size in bytes. The portal also offers MB, GB and TB.
    pub fn bytes(default: u64, summary: impl Into<String>) -> Self {
        Self { unit: Some("bytes"), ..Self::integer(default, summary) }
    }

    /// A text.
    pub fn text(default: &str, summary: impl Into<String>) -> Self {
        Self::new("text", default.into(), summary)
    }

    /// One of several words; the first is the default.
    pub fn choice(choices: &[&str], summary: impl Into<String>) -> Self {
        let default = choices.first().copied().unwrap_or_default();
        Self {
            choices: choices.iter().map(ToString::to_string).collect(),
            ..Self::new("choice", default.into(), summary)
        }
    }

    /// A list of texts, empty by default.
    pub fn list(summary: impl Into<String>) -> Self {
        Self::new("list", Value::Array(Vec::new()), summary)
    }

    /// Sets the label that people see. By default it is the name of the setting in words.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the kinds of repository that the setting applies to: `hosted`, `proxy`, `group`. The
    /// portal shows the setting only there. By default it applies to all kinds.
    pub fn repository_kinds(mut self, kinds: &[&str]) -> Self {
        self.repository_kinds = kinds.iter().map(ToString::to_string).collect();
        self
    }

    fn new(kind: &'static str, default: Value, summary: impl Into<String>) -> Self {
        Self {
            kind,
            default,
            choices: Vec::new(),
            summary: summary.into(),
            title: String::new(),
            repository_kinds: Vec::new(),
            unit: None,
        }
    }
}
