//! Parts of a description.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error_template::RefusalWords;
use crate::exchange::Exchange;

/// Bounds of what the format accepts.
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

/// A limit that an intent may name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NamedLimit {
    pub max_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess: Option<RefusalWords>,
}

/// Where clients exchange an identity of their build service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TrustedPublishing {
    pub paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// How package URLs are written.
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

/// A client that shows the sentence of a refusal in one place alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ShownSentence {
    pub user_agent: String,
    pub place: SentencePlace,
}

/// Where a client shows people the sentence of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SentencePlace {
    /// The reason phrase of HTTP/1.1, but for a plain 404.
    Reason,
    /// The whole body, which is plain text for this client.
    Body,
    /// The response header of this name, in lower case and with `-notice` at its end, beside the usual body.
    Header(String),
}

/// Where the host gives out bearers for the format, and which words of a scope mean which action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenService {
    path: String,
    read: String,
    publish: String,
    delete: String,
}

impl TokenService {
    /// At this path, as `/v2/token`, with the words `pull`, `push` and `delete`.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            read: "pull".to_owned(),
            publish: "push".to_owned(),
            delete: "delete".to_owned(),
        }
    }

    /// Other words for reading, publishing and deleting; lower-case letters.
    pub fn words(mut self, [read, publish, delete]: [&str; 3]) -> Self {
        (self.read, self.publish, self.delete) = (read.to_owned(), publish.to_owned(), delete.to_owned());
        self
    }
}
