//! Claims for fetches from upstreams. If several servers share the database, one server fetches a
//! response, and the others find it in the cache.

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};
use crate::store::Store;

/// Lifetime of a claim in ms by the database's clock. It bounds the wait for a server that ended
/// during its fetch.
const CLAIM_MS: i64 = 5000;

impl Store {
    /// Claims the fetch of this answer. Returns false if another server fetches it at the moment.
    /// Runs no statement while no other server of this database is known.
    #[boxed]
    pub async fn claim_fetch(&self, repository: RepositoryId, name: &CacheName) -> Result<bool, StoreError> {
        let Some(own) = self.inner.leases.as_ref().and_then(|leases| leases.beside_others()) else {
            return Ok(true);
        };
        let sql = "INSERT INTO upstream_fetches (repository, name, holder, until) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (repository, name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
                   WHERE upstream_fetches.until < $5 OR upstream_fetches.holder = excluded.holder";
        let now = self.now_ms();
        let values = values![repository.0, name, own, now.saturating_add(CLAIM_MS), now];
        Ok(self.inner.db.execute(sql, values).await? > 0)
    }

    /// Releases the claim after the fetch.
    #[boxed]
    pub async fn release_fetch(&self, repository: RepositoryId, name: &CacheName) -> Result<(), StoreError> {
        let Some(own) = self.inner.leases.as_ref().and_then(|leases| leases.beside_others()) else {
            return Ok(());
        };
        let sql = "DELETE FROM upstream_fetches WHERE repository = $1 AND name = $2 AND holder = $3";
        self.inner.db.execute(sql, values![repository.0, name, own]).await.map(drop)
    }
}
