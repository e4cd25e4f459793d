//! Changes of cached upstream responses, as part of a commit.

use crate::digest::Sha256;
use crate::ids::CacheName;

/// A change of a cached upstream response.
#[derive(Clone, Debug)]
pub enum AnswerChange {
    /// Stores a response and replaces an earlier one of the same name.
    Put(Box<StoredAnswer>),
    /// Removes the response of this name.
    Remove(CacheName),
}

impl AnswerChange {
    /// Cache key of the response.
    #[must_use]
    pub fn name(&self) -> &CacheName {
        match self {
            AnswerChange::Put(answer) => &answer.name,
            AnswerChange::Remove(name) => name,
        }
    }
}

/// A cached response in the form of its row.
#[derive(Clone, Debug)]
pub struct StoredAnswer {
    pub(crate) name: CacheName,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) status: u16,
    /// JSON list of pairs of name and value.
    pub(crate) headers: String,
    pub(crate) address: String,
    pub(crate) blob: Option<Sha256>,
    pub(crate) size: u64,
    pub(crate) fetched_at: i64,
    pub(crate) validated_at: i64,
}
