//! Confirmations: proof that a member has just given the password again, spent once.

use std::fmt;

use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

/// A confirmation of one action by one member.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfirmationRow {
    /// SHA-256 of the confirmation token.
    pub secret_sha256: [u8; 32],
    /// Where it is good.
    pub organization: OrganizationId,
    /// Whose it is.
    pub member: MemberId,
    /// What it confirms: `create_token`, …
    pub action: String,
    /// ms since 1970.
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
    /// Remembers a confirmation.
    pub async fn create_confirmation(&self, row: ConfirmationRow) -> Result<(), StoreError> {
        let _ = row;
        unimplemented!()
    }

    /// Spends a confirmation: true for the one caller who spends it, and only when member and action are its own and it has
    /// not expired at `now` (ms since 1970).
    pub async fn spend_confirmation(
        &self,
        secret_sha256: &[u8; 32],
        member: MemberId,
        action: &str,
        now: i64,
    ) -> Result<bool, StoreError> {
        let _ = (secret_sha256, member, action, now);
        unimplemented!()
    }
}
