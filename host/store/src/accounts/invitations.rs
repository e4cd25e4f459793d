//! Invitations: each accepted once, used up by the attempt of someone who has an account already, and good only as long as who
//! invited may still grant what it grants.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::{AuditEvent, MemberRow, NewMember, members, told};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, now_ms};
use crate::store::Store;

/// An invitation.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationRow {
    /// SHA-256 of its code.
    pub secret_sha256: [u8; 32],
    /// Into which organization.
    pub organization: OrganizationId,
    /// Who is invited, in lower case.
    pub email: String,
    /// What the member may do then, as the API's JSON.
    pub permissions: String,
    /// Who invited; without that member the invitation is gone.
    pub invited_by: MemberId,
    /// ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for InvitationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvitationRow").field("email", &self.email).finish_non_exhaustive()
    }
}

/// What who accepts an invitation brings.
#[derive(Clone)]
pub struct NewPassword {
    /// As people see the new member.
    pub name: String,
    /// Argon2id in PHC form.
    pub password_hash: String,
}

impl fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPassword").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The result of accepting an invitation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// There is a new member.
    Member(Box<MemberRow>),
    /// The e-mail address has an account; the invitation is used up.
    Taken,
    /// There is no such invitation any more.
    Gone,
}

impl Store {
    /// Remembers an invitation.
    #[boxed]
    pub async fn create_invitation(
        &self,
        row: InvitationRow,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM invitations WHERE expires_at <= $1", values![now_ms()]).await?;
        let hooks = told::invited(&mut transaction, &row, audit.as_ref()).await?;
        let InvitationRow { secret_sha256, organization, email, permissions, invited_by, expires_at } = row;
        let insert = "INSERT INTO invitations (secret_sha256, organization, email, permissions, invited_by, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let values = values![&secret_sha256, organization.0, email, permissions, invited_by.0, expires_at];
        transaction.execute(insert, values).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        Ok(())
    }

    /// The invitation of this code, unless it has expired at `now` (ms since 1970).
    #[boxed]
    pub async fn find_invitation(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<InvitationRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM invitations WHERE secret_sha256 = $1 AND expires_at > $2");
        let row = self.inner.db.fetch_one(sql, values![secret_sha256, now]).await?;
        row.map(|row| invitation(secret_sha256, &row)).transpose()
    }

    /// Uses an invitation up, for the one caller who is first, and makes the member that it was for. `Gone` as well where `may`
    /// says that the member who invited, as that is now, must not grant this: then the invitation has ended.
    pub async fn accept_invitation(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
        accepted: NewPassword,
        may: fn(&MemberRow, &InvitationRow) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<Accepted, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let find = "SELECT invited_by FROM invitations WHERE secret_sha256 = $1 AND expires_at > $2";
        let Some(row) = transaction.fetch_one(find, values![secret_sha256, now]).await? else {
            return Ok(Accepted::Gone);
        };
        // Before the code is touched, as every change of a member does.
        let inviter = members::lock(&mut transaction, &[MemberId(row.columns().int("invited_by")?)]).await?;
        let take = format!("DELETE FROM invitations WHERE secret_sha256 = $1 RETURNING {COLUMNS}");
        let Some(row) = transaction.fetch_one(take, values![secret_sha256]).await? else {
            return Ok(Accepted::Gone);
        };
        let invitation = invitation(secret_sha256, &row)?;
        if !inviter.iter().any(|inviter| may(inviter, &invitation)) {
            transaction.commit().await?;
            return Ok(Accepted::Gone);
        }
        let InvitationRow { organization, email, permissions, .. } = invitation;
        let NewPassword { name, password_hash } = accepted;
        let new = NewMember { email, name, password_hash, permissions };
        let made = members::insert(&mut transaction, organization, new).await?;
        let detail = format!(r#"{{"member":{}}}"#, made.is_some());
        let audit = audit.map(|event| AuditEvent { detail, ..event });
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(made.map_or(Accepted::Taken, |member| Accepted::Member(Box::new(member))))
    }
}

const COLUMNS: &str = "organization, email, permissions, invited_by, expires_at";

fn invitation(secret_sha256: &[u8; 32], row: &Row) -> Result<InvitationRow, StoreError> {
    let mut columns = row.columns();
    Ok(InvitationRow {
        secret_sha256: *secret_sha256,
        organization: OrganizationId(columns.int("organization")?),
        email: columns.text("email")?,
        permissions: columns.text("permissions")?,
        invited_by: MemberId(columns.int("invited_by")?),
        expires_at: columns.int("expires_at")?,
    })
}
