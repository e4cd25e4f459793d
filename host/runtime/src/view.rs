//! A repository as it is handed to a plugin.

use std::sync::Arc;

use packhouse_store::RepositoryId;

/// A repository as it is handed to a plugin.
#[derive(Clone, Debug)]
pub struct RepositoryView {
    /// Where its records are.
    pub id: RepositoryId,
    /// As it stands in addresses.
    pub name: String,
    /// `hosted`, `proxy` or `group`.
    pub kind: String,
    /// A JSON object with every default filled in.
    pub settings: Arc<str>,
}
