//! What a plugin answered, validated: nothing of it is trusted before.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use packhouse_store::Blob;

/// The answer to a request.
#[derive(Clone)]
pub struct Answer {
    /// 200 to 599.
    pub status: u16,
    /// Without hop-by-hop fields, `content-length` (but for an answer without content), `date` and `set-cookie`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What comes after the headers.
    pub content: Content,
    /// When what is served was last changed, in ms since 1970.
    pub modified: Option<u64>,
    /// Whether the answer depends on the request, the settings and the target's records alone, and so may be kept until one of
    /// those changes: false when clock, caller, upstream, identity or other repositories were used.
    pub keepable: bool,
}

/// The content of an answer.
#[derive(Clone)]
pub enum Content {
    /// Nothing.
    None,
    /// At most 1 MiB.
    Inline(Bytes),
    /// Of any size; readable and durable after the call.
    Blob(Blob),
}

/// A refusal in the format's own words.
#[derive(Clone, Debug)]
pub struct Failure {
    /// 400 to 599.
    pub status: u16,
    /// As in [`Answer::headers`].
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// At least one.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// Further facts, a JSON object.
    pub detail: Option<serde_json::Value>,
}
