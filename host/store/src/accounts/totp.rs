//! Second factors: secrets of time-based one-time passwords (RFC 6238), and recovery codes.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::texts::{list_json, read_list};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

/// Second factor of a member. Its `Debug` hides the secret, although it is sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpRow {
    pub member: MemberId,
    /// Secret, sealed by the server.
    pub secret: Vec<u8>,
    /// Time in ms since 1970 at which the member confirmed the second factor with a code. Until
    /// then, no sign-in requires it.
    pub confirmed_at: Option<i64>,
    /// Time step of the last accepted code. Codes of this step and of earlier ones are used up.
    pub last_step: i64,
    /// SHA-256 of each unused recovery code, in hex.
    pub recovery: Vec<String>,
}

impl fmt::Debug for TotpRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TotpRow").field("member", &self.member).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the member's second factor, confirmed or not.
    #[boxed]
    pub async fn totp(&self, member: MemberId) -> Result<Option<TotpRow>, StoreError> {
        let sql = "SELECT member, secret, confirmed_at, last_step, recovery FROM totp WHERE member = $1";
        self.inner.db.find(sql, values![member.0]).await?.as_ref().map(totp).transpose()
    }

    /// Returns whether the member has a confirmed second factor.
    #[boxed]
    pub async fn has_totp(&self, member: MemberId) -> Result<bool, StoreError> {
        let sql = "SELECT member FROM totp WHERE member = $1 AND confirmed_at IS NOT NULL";
        Ok(self.inner.db.find(sql, values![member.0]).await?.is_some())
    }

    /// Lists the members of the organization that have a confirmed second factor.
    #[boxed]
    pub async fn members_with_totp(&self, organization: OrganizationId) -> Result<Vec<MemberId>, StoreError> {
        let sql = "SELECT p.member FROM totp p JOIN members m ON m.id = p.member \
                   WHERE m.organization = $1 AND p.confirmed_at IS NOT NULL ORDER BY p.member";
        let rows = self.inner.db.fetch(sql, values![organization.0]).await?;
        rows.iter().map(|row| row.columns().int("member").map(MemberId)).collect()
    }

    /// Stores an unconfirmed second factor with this sealed secret. Replaces an unconfirmed one.
    /// Returns false if the member has a confirmed one.
    #[boxed]
    pub async fn begin_totp(&self, member: MemberId, secret: &[u8]) -> Result<bool, StoreError> {
        let insert = "INSERT INTO totp (member, secret) VALUES ($1, $2) ON CONFLICT (member) DO UPDATE \
                      SET secret = excluded.secret, last_step = 0, recovery = '[]' WHERE totp.confirmed_at IS NULL";
        Ok(self.inner.db.execute(insert, values![member.0, secret]).await? == 1)
    }

    /// Confirms the second factor that was read, at `now` (ms since 1970). `step` is the time step
    /// of the code that confirmed it; that code is used up. `recovery` holds the SHA-256 of each
    /// recovery code in hex. Returns false if it was confirmed, replaced or deleted meanwhile.
    #[boxed]
    pub async fn confirm_totp(
        &self,
        read: &TotpRow,
        step: i64,
        recovery: &[String],
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let confirm = "UPDATE totp SET confirmed_at = $3, last_step = $4, recovery = $5 \
                       WHERE member = $1 AND secret = $2 AND confirmed_at IS NULL";
        let values = values![read.member.0, read.secret.as_slice(), now, step, list_json(recovery)];
        let confirmed = transaction.execute(confirm, values).await? == 1;
        if confirmed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(confirmed)
    }

    /// Uses up the codes up to this time step. Returns true for exactly one caller, and only if the
    /// step is later than that of every accepted code. So each code counts once.
    #[boxed]
    pub async fn use_totp_step(&self, member: MemberId, step: i64) -> Result<bool, StoreError> {
        let spend = "UPDATE totp SET last_step = $2 \
                     WHERE member = $1 AND last_step < $2 AND confirmed_at IS NOT NULL";
        Ok(self.inner.db.execute(spend, values![member.0, step]).await? == 1)
    }

    /// Uses up the recovery code with this SHA-256 (hex). Returns true for exactly one caller.
    #[boxed]
    pub async fn use_recovery_code(
        &self,
        member: MemberId,
        sha256_hex: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let find = format!(
            "SELECT recovery FROM totp WHERE member = $1 AND confirmed_at IS NOT NULL{}",
            transaction.for_update()
        );
        let Some(row) = transaction.fetch_one(find, values![member.0]).await? else { return Ok(false) };
        let mut codes = read_list(&row.columns().text("recovery")?, "recovery")?;
        let before = codes.len();
        codes.retain(|code| code != sha256_hex);
        if codes.len() == before {
            return Ok(false);
        }
        let update = "UPDATE totp SET recovery = $2 WHERE member = $1";
        transaction.execute(update, values![member.0, list_json(&codes)]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Deletes a member's second factor, confirmed or not. Returns false if the member has none.
    #[boxed]
    pub async fn delete_totp(
        &self,
        organization: OrganizationId,
        member: MemberId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let delete =
            "DELETE FROM totp WHERE member = (SELECT id FROM members WHERE organization = $1 AND id = $2)";
        let deleted = transaction.execute(delete, values![organization.0, member.0]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }
}

fn totp(row: &Row) -> Result<TotpRow, StoreError> {
    let mut columns = row.columns();
    Ok(TotpRow {
        member: MemberId(columns.int("member")?),
        secret: columns.vec("secret")?,
        confirmed_at: columns.opt_int("confirmed_at")?,
        last_step: columns.int("last_step")?,
        recovery: read_list(&columns.text("recovery")?, "recovery")?,
    })
}
