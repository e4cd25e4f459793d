//! Finding packages among what is shown.

use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Matches;
use crate::store::Store;

impl Store {
    /// Packages whose name or summary holds every word of `text`, the best match first; all by name when it is empty. At most
    /// `limit` and 250 of them, from `offset` on.
    pub async fn search(
        &self,
        repository: RepositoryId,
        text: &str,
        offset: u32,
        limit: u32,
    ) -> Result<Matches, StoreError> {
        let _ = (repository, text, offset, limit);
        unimplemented!()
    }
}
