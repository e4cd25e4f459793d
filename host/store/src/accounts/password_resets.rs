//! Password resets: single-use codes for one member. A code is valid only while the member who
//! created it may reset that member's password.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::rows::member::{member, member_columns};
use crate::accounts::{AuditEvent, MemberRow, members};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::{MemberId, now_ms};
use crate::store::Store;

/// The two members of a password reset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PasswordReset {
    /// Member whose password is reset.
    pub member: MemberRow,
    /// Member who created the reset.
    pub made_by: MemberRow,
}

#[derive(Clone, PartialEq, Eq)]
pub struct PasswordResetRow {
    /// SHA-256 of the reset code.
    pub secret_sha256: [u8; 32],
    /// Member whose password is reset.
    pub member: MemberId,
    /// Member who created the reset. Deleting that member deletes the reset.
    pub made_by: MemberId,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for PasswordResetRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordResetRow").field("member", &self.member).finish_non_exhaustive()
    }
}

impl Store {
    /// Stores a reset and deletes expired ones.
    #[boxed]
    pub async fn create_password_reset(
        &self,
        row: PasswordResetRow,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM password_resets WHERE expires_at <= $1", values![now_ms()]).await?;
        let PasswordResetRow { secret_sha256, member, made_by, expires_at } = row;
        let insert = "INSERT INTO password_resets (secret_sha256, member, made_by, expires_at) VALUES ($1, $2, $3, $4)";
        transaction.execute(insert, values![&secret_sha256, member.0, made_by.0, expires_at]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// Returns the members of the reset with this code, unless it has expired at `now` (ms since
    /// 1970).
    #[boxed]
    pub async fn find_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<PasswordReset>, StoreError> {
        let (target, maker) = (member_columns("m"), member_columns("maker"));
        let sql = format!(
            "SELECT {target}, {maker} FROM password_resets p JOIN members m ON m.id = p.member \
             JOIN members maker ON maker.id = p.made_by WHERE p.secret_sha256 = $1 AND p.expires_at > $2"
        );
        let row = self.inner.db.fetch_one(sql, values![secret_sha256, now]).await?;
        let read = |row: Row| {
            let (target, maker) = (member(&mut row.columns_of("m"))?, member(&mut row.columns_of("maker"))?);
            Ok(PasswordReset { member: target, made_by: maker })
        };
        row.map(read).transpose()
    }

    /// Uses up a code: sets the password hash and ends the member's sessions, confirmations and
    /// other resets. Only the first caller succeeds. Returns false if the code no longer exists.
    /// Also returns false, and ends the code, if `may` decides that its creator must no longer
    /// reset that password. While the creator or the member is suspended, returns false and keeps
    /// the code.
    pub async fn complete_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
        password_hash: &str,
        may: impl Fn(&PasswordReset) -> bool + Send,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let Some(reset) = locked(&mut transaction, secret_sha256, now).await? else { return Ok(false) };
        // A suspension may end before the code does, so the code stays.
        if !reset.made_by.active || !reset.member.active {
            return Ok(false);
        }
        let take = "DELETE FROM password_resets WHERE secret_sha256 = $1";
        if transaction.execute(take, values![secret_sha256]).await? == 0 {
            return Ok(false);
        }
        let may = may(&reset);
        if may {
            members::set_password(&mut transaction, reset.member.id, password_hash).await?;
            remember(&mut transaction, audit).await?;
        }
        transaction.commit().await?;
        Ok(may)
    }
}

/// Locks the two members of a code until the transaction ends. Locks the members before the code,
/// in the same order as every change of a member.
async fn locked(
    transaction: &mut Transaction,
    secret_sha256: &[u8; 32],
    now: i64,
) -> Result<Option<PasswordReset>, StoreError> {
    let find = "SELECT member, made_by FROM password_resets WHERE secret_sha256 = $1 AND expires_at > $2";
    let Some(row) = transaction.fetch_one(find, values![secret_sha256, now]).await? else { return Ok(None) };
    let mut columns = row.columns();
    let (target, maker) = (MemberId(columns.int("member")?), MemberId(columns.int("made_by")?));
    let found = members::lock(transaction, &[target, maker]).await?;
    let of = |id: MemberId| found.iter().find(|row| row.id == id).cloned();
    Ok(of(target).zip(of(maker)).map(|(member, made_by)| PasswordReset { member, made_by }))
}
