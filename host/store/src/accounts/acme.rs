//! ACME state that the servers of one database share: sealed values, proofs of domain control, and
//! the lock for placing orders.

use std::time::Duration;

use crate::boxed;
use crate::db::{millis, values};
use crate::error::StoreError;
use crate::store::Store;

/// Response to one challenge of a certificate authority.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcmeProof {
    pub token: String,
    /// Domain to be proven, in lower case.
    pub domain: String,
    /// Response to the challenge (RFC 8555, section 8.1).
    pub key_authorization: String,
}

impl Store {
    /// Returns the sealed text stored under this name.
    #[boxed]
    pub async fn acme_value(&self, name: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT sealed FROM acme_values WHERE name = $1";
        let row = self.inner.db.fetch_one(sql, values![name]).await?;
        row.map(|row| row.columns().text("sealed")).transpose()
    }

    /// Stores a sealed text under this name. `None` deletes it.
    #[boxed]
    pub async fn set_acme_value(&self, name: &str, sealed: Option<&str>) -> Result<(), StoreError> {
        let db = &self.inner.db;
        match sealed {
            Some(sealed) => {
                let set = "INSERT INTO acme_values (name, sealed, updated_at) VALUES ($1, $2, $3) \
                           ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at";
                db.execute(set, values![name, sealed, self.now_ms()]).await?;
            }
            None => {
                db.execute("DELETE FROM acme_values WHERE name = $1", values![name]).await?;
            }
        }
        Ok(())
    }

    /// Returns all proofs that have not expired, the newest first. A domain that was ordered again
    /// has several.
    #[boxed]
    pub async fn acme_proofs(&self) -> Result<Vec<AcmeProof>, StoreError> {
        let sql = "SELECT token, domain, key_authorization FROM acme_proofs WHERE expires_at > $1 ORDER BY expires_at DESC";
        let rows = self.inner.db.fetch(sql, values![self.now_ms()]).await?;
        let proof = |row: &crate::db::Row| {
            let mut columns = row.columns();
            let (token, domain) = (columns.text("token")?, columns.text("domain")?);
            Ok(AcmeProof { token, domain, key_authorization: columns.text("key_authorization")? })
        };
        rows.iter().map(proof).collect()
    }

    /// Stores a proof for this long, and deletes expired ones.
    #[boxed]
    pub async fn add_acme_proof(&self, proof: &AcmeProof, keep: Duration) -> Result<(), StoreError> {
        let now = self.now_ms();
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM acme_proofs WHERE expires_at <= $1", values![now]).await?;
        let set = "INSERT INTO acme_proofs (token, domain, key_authorization, expires_at) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (token) DO UPDATE SET domain = excluded.domain, \
                   key_authorization = excluded.key_authorization, expires_at = excluded.expires_at";
        let (token, domain) = (proof.token.as_str(), proof.domain.as_str());
        let until = now.saturating_add(millis(keep));
        transaction.execute(set, values![token, domain, proof.key_authorization.as_str(), until]).await?;
        transaction.commit().await
    }

    /// Acquires the lock for orders under this name, or extends it by `keep`. Returns false while
    /// another server holds it. Times are those of the database's clock.
    #[boxed]
    pub async fn acquire_acme_lock(
        &self,
        name: &str,
        holder: &str,
        keep: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let take = "INSERT INTO acme_leases (name, holder, until_ms) VALUES ($1, $2, $3) \
                    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms \
                    WHERE acme_leases.until_ms <= $4 OR acme_leases.holder = excluded.holder";
        let until = now.saturating_add(millis(keep));
        Ok(self.inner.db.execute(take, values![name, holder, until, now]).await? == 1)
    }

    /// Releases the lock if this holder has it.
    #[boxed]
    pub async fn release_acme_lock(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let end = "DELETE FROM acme_leases WHERE name = $1 AND holder = $2";
        self.inner.db.execute(end, values![name, holder]).await.map(|_| ())
    }
}
