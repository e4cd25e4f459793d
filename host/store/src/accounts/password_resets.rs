//! Password resets: a code for one member, good once, and only as long as who made it may still reset that member's password.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::rows::member::{MEMBER_COLUMNS, member};
use crate::accounts::{AuditEvent, MemberRow, members};
use crate::boxed;
use crate::db::{Row, Transaction, columns_of, values};
use crate::error::StoreError;
use crate::ids::{MemberId, now_ms};
use crate::store::Store;

/// Who a password reset is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PasswordReset {
    /// Whose password it sets.
    pub member: MemberRow,
    /// Who made it.
    pub made_by: MemberRow,
}

/// A password reset.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordResetRow {
    /// SHA-256 of its code.
    pub secret_sha256: [u8; 32],
    /// Whose password it sets.
    pub member: MemberId,
    /// Who made it; without that member the reset is gone.
    pub made_by: MemberId,
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

    /// Whose password this code sets, and who made it, unless it has expired at `now` (ms since 1970).
    #[boxed]
    pub async fn find_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<PasswordReset>, StoreError> {
        let (member_columns, maker) = (columns_of("m", MEMBER_COLUMNS), columns_of("maker", MEMBER_COLUMNS));
        let sql = format!(
            "SELECT {member_columns}, {maker} FROM password_resets p JOIN members m ON m.id = p.member \
             JOIN members maker ON maker.id = p.made_by WHERE p.secret_sha256 = $1 AND p.expires_at > $2"
        );
        let row = self.inner.db.fetch_one(sql, values![secret_sha256, now]).await?;
        let read = |row: Row| {
            let (target, maker) = (member(&mut row.columns_of("m"))?, member(&mut row.columns_of("maker"))?);
            Ok(PasswordReset { member: target, made_by: maker })
        };
        row.map(read).transpose()
    }

    /// Uses a code up, for the one caller who is first: sets the password's hash and ends the member's sessions,
    /// confirmations and further resets. False when there is no such code any more, and when `may` says of the two members as
    /// they are now that the one must not reset the other's password: then the code has ended.
    pub async fn complete_password_reset(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
        password_hash: &str,
        may: fn(&PasswordReset) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let Some(reset) = locked(&mut transaction, secret_sha256, now).await? else { return Ok(false) };
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

/// The two members of a code, who do not change before the transaction ends. They are locked before the code is touched, as every
/// change of a member does.
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
