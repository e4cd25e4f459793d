//! Sessions of members who signed in.

use std::fmt;

use crate::accounts::{AuditEvent, MemberRow};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

/// A session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of the session's secret.
    pub secret_sha256: [u8; 32],
    /// The one organization that it is for.
    pub organization: OrganizationId,
    /// Whose it is.
    pub member: MemberId,
    /// ms since 1970.
    pub created_at: i64,
    /// ms since 1970.
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
    /// Remembers a session.
    pub async fn create_session(&self, row: SessionRow, audit: Option<AuditEvent>) -> Result<(), StoreError> {
        let _ = (row, audit);
        unimplemented!()
    }

    /// The session of this secret with its member, unless it has expired at `now` (ms since 1970).
    pub async fn find_session(
        &self,
        secret_sha256: &[u8; 32],
        now: i64,
    ) -> Result<Option<(SessionRow, MemberRow)>, StoreError> {
        let _ = (secret_sha256, now);
        unimplemented!()
    }

    /// Ends a session; true if there was one.
    pub async fn delete_session(
        &self,
        secret_sha256: &[u8; 32],
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (secret_sha256, audit);
        unimplemented!()
    }
}
