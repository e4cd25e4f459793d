//! Password resets: a code for one member, good once.

use std::fmt;

use crate::accounts::audit::remember;
use crate::accounts::members::{MEMBER_COLUMNS, member};
use crate::accounts::{AuditEvent, MemberRow, members};
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{MemberId, now_ms};
use crate::store::Store;

/// A password reset.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordResetRow {
    /// SHA-256 of its code.
    pub secret_sha256: [u8; 32],
    /// Whose password it sets.
    pub member: MemberId,
    /// ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for PasswordResetRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordResetRow").field("member", &self.member).finish_non_exhaustive()
    }
}

impl Store {
    /// Remembers a reset.
    pub async fn create_password_reset(
        &self,
        row: PasswordResetRow,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM password_resets WHERE expires_at <= $1", values![now_ms()]).await?;
        let insert = "INSERT INTO password_resets (secret_sha256, member, expires_at) VALUES ($1, $2, $3)";
        transaction.execute(insert, values![&row.secret_sha256, row.member.0, row.expires_at]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// Whose password this code sets, unless it has expired at `now` (ms since 1970).
    pub async fn find_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<MemberRow>, StoreError> {
        let sql = format!(
            "SELECT {MEMBER_COLUMNS} FROM password_resets p JOIN members m ON m.id = p.member \
             WHERE p.secret_sha256 = $1 AND p.expires_at > $2"
        );
        let row = self.inner.db.fetch_one(sql, values![secret_sha256, now]).await?;
        row.map(|row| member(&mut row.columns())).transpose()
    }

    /// Uses a code up, for the one caller who is first: sets the password's hash and ends the member's sessions,
    /// confirmations and further resets. False when there is no such code any more.
    pub async fn complete_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
        password_hash: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let take =
            "DELETE FROM password_resets WHERE secret_sha256 = $1 AND expires_at > $2 RETURNING member";
        let Some(row) = transaction.fetch_one(take, values![secret_sha256, now]).await? else {
            return Ok(false);
        };
        let id = MemberId(row.columns().int()?);
        members::set_password(&mut transaction, id, password_hash).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
