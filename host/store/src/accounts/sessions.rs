use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::rows::member::{member, member_columns};
use crate::accounts::{AuditEvent, MemberRow};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, now_ms};
use crate::store::Store;

#[derive(Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub secret_sha256: [u8; 32],
    pub organization: OrganizationId,
    pub member: MemberId,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for SessionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRow")
            .field("member", &self.member)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Stores a session and deletes expired ones.
    #[boxed]
    pub async fn create_session(&self, row: SessionRow, audit: Option<AuditEvent>) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM sessions WHERE expires_at <= $1", values![now_ms()]).await?;
        let SessionRow { secret_sha256, organization, member, created_at, expires_at } = row;
        let values = values![&secret_sha256, organization.0, member.0, created_at, expires_at];
        let insert = "INSERT INTO sessions (secret_sha256, organization, member, created_at, expires_at) \
                      VALUES ($1, $2, $3, $4, $5)";
        transaction.execute(insert, values).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// Returns the session with this secret and its member, unless it has expired at `now` (ms
    /// since 1970).
    #[boxed]
    pub async fn find_session(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<(SessionRow, MemberRow)>, StoreError> {
        // Selects the sign-in settings only so that the look-up fails if they cannot be read.
        let sql = format!(
            "SELECT s.organization, s.member, s.created_at, s.expires_at, {}, x.settings \
             FROM sessions s JOIN members m ON m.id = s.member \
             LEFT JOIN sso_settings x ON x.organization = s.organization WHERE s.secret_sha256 = $1 AND s.expires_at > $2",
            member_columns("m")
        );
        let Some(row) = self.inner.db.find(sql, values![secret_sha256, now]).await? else {
            return Ok(None);
        };
        let mut columns = row.columns();
        let session = SessionRow {
            secret_sha256: *secret_sha256,
            organization: OrganizationId(columns.int("organization")?),
            member: MemberId(columns.int("member")?),
            created_at: columns.int("created_at")?,
            expires_at: columns.int("expires_at")?,
        };
        Ok(Some((session, member(&mut row.columns_of("m"))?)))
    }

    /// Lists a member's sessions that have not expired at `now` (ms since 1970), the newest first,
    /// at most 1,000. A member has as many sessions as sign-ins within the lifetime of a session.
    #[boxed]
    pub async fn list_sessions(&self, member: MemberId, now: i64) -> Result<Vec<SessionRow>, StoreError> {
        let sql = "SELECT secret_sha256, organization, created_at, expires_at FROM sessions \
                   WHERE member = $1 AND expires_at > $2 ORDER BY created_at DESC, secret_sha256 LIMIT 1000";
        let rows = self.inner.db.fetch(sql, values![member.0, now]).await?;
        let read = |row: &Row| {
            let mut columns = row.columns();
            Ok(SessionRow {
                secret_sha256: columns.hash("secret_sha256")?,
                organization: OrganizationId(columns.int("organization")?),
                member,
                created_at: columns.int("created_at")?,
                expires_at: columns.int("expires_at")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Ends a session. Returns false if it did not exist.
    #[boxed]
    pub async fn delete_session(
        &self,
        secret_sha256: &[u8; 32],
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let delete = "DELETE FROM sessions WHERE secret_sha256 = $1";
        let deleted = transaction.execute(delete, values![secret_sha256]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }
}
