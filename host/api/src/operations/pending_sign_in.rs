//! Sign-ins between the password and the code of the second factor. The browser keeps the sealed
//! state, so that the member does not enter the password again.

use packhouse_identity::{BearerHolder, Sealer, Secret};
use packhouse_store::MemberRow;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// Time that a member has to enter the code: 5 minutes in ms.
const PENDING_MS: i64 = 5 * 60 * 1000;
/// Purpose for which the state is sealed.
const PURPOSE: &str = "sign-in that waits for a code";

/// A member who has proved the password, and nothing else yet.
#[derive(Deserialize, Serialize)]
pub(super) struct PendingSignIn {
    pub(super) organization: i64,
    pub(super) member: i64,
    /// The member with a fingerprint of the password, which changes with the password.
    holder: BearerHolder,
    /// End in ms since 1970.
    expires_at: i64,
}

impl PendingSignIn {
    pub(super) fn of(member: &MemberRow, now: i64) -> PendingSignIn {
        PendingSignIn {
            organization: member.organization.0,
            member: member.id.0,
            holder: BearerHolder::member(member),
            expires_at: now + PENDING_MS,
        }
    }

    /// Returns whether this member has proved the password that the member has now.
    pub(super) fn is_of(&self, member: &MemberRow) -> bool {
        self.holder.is(member)
    }

    pub(super) fn seal(&self, sealer: &Sealer) -> Result<Secret, ApiError> {
        let text = serde_json::to_string(self).map_err(anyhow::Error::from)?;
        let sealed = sealer.seal(PURPOSE, &Secret::new(text)).map_err(anyhow::Error::from)?;
        Ok(Secret::new(sealed))
    }

    /// Opens a sealed state. `None` if it is not one, or has ended.
    pub(super) fn open(sealer: &Sealer, sealed: &Secret, now: i64) -> Option<PendingSignIn> {
        let text = sealer.open(PURPOSE, sealed.reveal()).ok()?;
        let pending: PendingSignIn = serde_json::from_str(text.reveal()).ok()?;
        (now < pending.expires_at).then_some(pending)
    }
}
