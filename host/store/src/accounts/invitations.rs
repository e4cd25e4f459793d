//! Invitations. The first attempt to accept an invitation uses it up, even if the e-mail address
//! already has an account. An invitation is valid only while the member who sent it may grant its
//! permissions.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::{AuditEvent, MemberRow, NewMember, members, token_events};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, now_ms};
use crate::store::Store;

#[derive(Clone, PartialEq, Eq)]
pub struct InvitationRow {
    /// SHA-256 of the invitation code.
    pub secret_sha256: [u8; 32],
    pub organization: OrganizationId,
    /// E-mail address of the invited person, in lower case.
    pub email: String,
    /// Permissions of the new member, as the API's JSON.
    pub permissions: String,
    /// Member who sent the invitation. Deleting that member deletes the invitation.
    pub invited_by: MemberId,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for InvitationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvitationRow").field("email", &self.email).finish_non_exhaustive()
    }
}

/// Name and password of a person who accepts an invitation.
#[derive(Clone)]
pub struct NewPassword {
    /// Display name of the new member.
    pub name: String,
    pub password_hash: String,
}

impl fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPassword").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepted {
    Member(Box<MemberRow>),
    /// The e-mail address already has an account. The invitation is used up.
    Taken,
    /// The invitation no longer exists.
    Gone,
}

impl Store {
    /// Stores an invitation and deletes expired ones.
    #[boxed]
    pub async fn create_invitation(
        &self,
        row: InvitationRow,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM invitations WHERE expires_at <= $1", values![now_ms()]).await?;
        let hooks = token_events::invited(&mut transaction, &row, audit.as_ref()).await?;
        let InvitationRow { secret_sha256, organization, email, permissions, invited_by, expires_at } = row;
        let insert = "INSERT INTO invitations (secret_sha256, organization, email, permissions, invited_by, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let values = values![&secret_sha256, organization.0, email, permissions, invited_by.0, expires_at];
        transaction.execute(insert, values).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(())
    }

    /// Returns the invitation with this code unless it has expired at `now` (ms since 1970).
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

    /// Uses up an invitation and creates its member. Only the first caller succeeds. If `may`
    /// decides that the inviting member must no longer grant these permissions, the invitation ends
    /// and the result is `Gone`. While the inviting member is suspended, the result is `Gone` too,
    /// but the invitation stays.
    pub async fn accept_invitation(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
        accepted: NewPassword,
        may: impl Fn(&MemberRow, &InvitationRow) -> bool + Send,
        audit: Option<AuditEvent>,
    ) -> Result<Accepted, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let find = "SELECT invited_by FROM invitations WHERE secret_sha256 = $1 AND expires_at > $2";
        let Some(row) = transaction.fetch_one(find, values![secret_sha256, now]).await? else {
            return Ok(Accepted::Gone);
        };
        // Locks the member before the invitation, in the same order as every change of a member.
        let inviter = members::lock(&mut transaction, &[MemberId(row.columns().int("invited_by")?)]).await?;
        // A suspension may end before the invitation does, so the invitation stays.
        if inviter.iter().any(|inviter| !inviter.active) {
            return Ok(Accepted::Gone);
        }
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
