//! Keys alone: one level of a tree, however large the tree.

use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

impl Store {
    /// Keys that begin with `prefix`, in the order of their bytes, after `after`, at most `limit` and 10,000. With a
    /// `delimiter`, what follows its first occurrence beyond `prefix` is cut off (the delimiter stays), and what then is equal
    /// stands once; `after` is then such a cut key.
    pub async fn keys(
        &self,
        repository: RepositoryId,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let _ = (repository, prefix, delimiter, after, limit);
        unimplemented!()
    }
}
