//! Confirmations: single-use proofs that a member has just entered the password again.

use std::fmt;

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, now_ms};
use crate::store::Store;

/// Confirmation of one action by one member.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfirmationRow {
    pub secret_sha256: [u8; 32],
    pub organization: OrganizationId,
    pub member: MemberId,
    /// Confirmed action: `create_token`, …
    pub action: String,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for ConfirmationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfirmationRow")
            .field("member", &self.member)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Stores a confirmation and deletes expired ones.
    #[boxed]
    pub async fn create_confirmation(&self, row: ConfirmationRow) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM confirmations WHERE expires_at <= $1", values![now_ms()]).await?;
        let ConfirmationRow { secret_sha256, organization, member, action, expires_at } = row;
        let values = values![&secret_sha256, organization.0, member.0, action, expires_at];
        let insert = "INSERT INTO confirmations (secret_sha256, organization, member, action, expires_at) \
                      VALUES ($1, $2, $3, $4, $5)";
        transaction.execute(insert, values).await?;
        transaction.commit().await
    }

    /// Uses up a confirmation. Returns true for exactly one caller, and only if the member and
    /// action match and the confirmation has not expired at `now` (ms since 1970).
    #[boxed]
    pub async fn spend_confirmation(
        &self,
        secret_sha256: &[u8; 32],
        member: MemberId,
        action: &str,
        now: i64,
    ) -> Result<bool, StoreError> {
        let spend = "DELETE FROM confirmations WHERE secret_sha256 = $1 AND member = $2 AND action = $3 \
                     AND expires_at > $4";
        let values = values![secret_sha256, member.0, action, now];
        Ok(self.inner.db.execute(spend, values).await? == 1)
    }

    /// Returns whether the member has a confirmation of this action that has not expired at `now`
    /// (ms since 1970). The confirmation can still be used afterwards.
    #[boxed]
    pub async fn has_confirmation(
        &self,
        secret_sha256: &[u8; 32],
        member: MemberId,
        action: &str,
        now: i64,
    ) -> Result<bool, StoreError> {
        let find = "SELECT 1 AS found FROM confirmations WHERE secret_sha256 = $1 AND member = $2 AND action = $3 \
                    AND expires_at > $4";
        let values = values![secret_sha256, member.0, action, now];
        Ok(self.inner.db.fetch_one(find, values).await?.is_some())
    }
}
