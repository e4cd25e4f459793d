use crate::boxed;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Returns whether every server of the database knows teams, suspension, and limits of
    /// credentials to packages. A server of an earlier version would ignore them.
    #[boxed]
    pub async fn servers_know_access(&self) -> Result<bool, StoreError> {
        self.inner.db.servers_know_features().await
    }
}
