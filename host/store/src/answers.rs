//! Changes of what proxies keep of their upstreams, as a commit has them.

use crate::digest::Sha256;
use crate::ids::CacheName;

/// A change of what a proxy keeps of its upstream.
#[derive(Clone, Debug)]
pub enum AnswerChange {
    /// An answer in the place of what there was of its name.
    Put(Box<StoredAnswer>),
    /// Nothing of this name any longer.
    Remove(CacheName),
}

impl AnswerChange {
    /// Of what was asked.
    #[must_use]
    pub fn name(&self) -> &CacheName {
        match self {
            AnswerChange::Put(answer) => &answer.name,
            AnswerChange::Remove(name) => name,
        }
    }
}

/// An answer as its row has it.
#[derive(Clone, Debug)]
pub struct StoredAnswer {
    pub(crate) name: CacheName,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) status: u16,
    /// A JSON list of name and value.
    pub(crate) headers: String,
    pub(crate) address: String,
    pub(crate) blob: Option<Sha256>,
    pub(crate) size: u64,
    pub(crate) fetched_at: i64,
    pub(crate) validated_at: i64,
}
