//! Reading records.

use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Entry;
use crate::store::Store;

impl Store {
    /// The record, or none.
    pub async fn get(&self, repository: RepositoryId, key: &str) -> Result<Option<Entry>, StoreError> {
        let _ = (repository, key);
        unimplemented!()
    }

    /// Records whose key begins with `prefix`, in the order of the keys' bytes, after the key `after`, at most `limit` (and
    /// 1,000) and as many as make up 1 MiB. Only an empty list is the end.
    pub async fn scan(
        &self,
        repository: RepositoryId,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let _ = (repository, prefix, after, limit);
        unimplemented!()
    }
}
