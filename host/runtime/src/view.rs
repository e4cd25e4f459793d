//! A repository as it is handed to a plugin.

use std::sync::Arc;

use packhouse_store::{RepositoryId, Seen};

/// A repository as it is handed to a plugin.
#[derive(Clone, Debug)]
pub struct RepositoryView {
    /// Where its records are.
    pub id: RepositoryId,
    /// The revision at which the request saw it: a call that only reads may find its records as they were then, or later.
    pub revision: u64,
    /// As it stands in addresses.
    pub name: Arc<str>,
    /// `hosted`, `proxy` or `group`.
    pub kind: Arc<str>,
    /// A JSON object with every default filled in.
    pub settings: Arc<str>,
}

impl RepositoryView {
    /// What is read of it, and from which revision on.
    pub(crate) fn seen(&self) -> Seen {
        Seen { repository: self.id, revision: self.revision }
    }
}
