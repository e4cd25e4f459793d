//! A repository as a plugin receives it.

use std::sync::Arc;

use packhouse_store::{ReadPoint, RepositoryId};

#[derive(Clone, Debug)]
pub struct RepositoryView {
    pub id: RepositoryId,
    /// The revision at which the request read the repository. A call that only reads finds the
    /// records of this revision or of a later one.
    pub revision: u64,
    /// Name as used in addresses.
    pub name: Arc<str>,
    pub kind: Arc<str>,
    /// A JSON object with every default filled in.
    pub settings: Arc<str>,
}

impl RepositoryView {
    /// The repository and the revision for its reads.
    pub(crate) fn read_point(&self) -> ReadPoint {
        ReadPoint { repository: self.id, revision: self.revision }
    }
}
