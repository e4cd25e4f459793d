//! Parts that tokens and access keys share: each is created with a secret that is shown once, and
//! can be rotated with an overlap.

use packhouse_identity::Secret;
use packhouse_identity::access::CredentialState;
use packhouse_wire::catalogue::Code;

use crate::error::ApiError;

pub struct NewCredential<R> {
    pub row: R,
    /// Secret, shown only this once; `None` if the actor may not use the credential.
    pub secret: Option<Secret>,
    /// The credential that it replaces, after a rotation.
    pub replaced: Option<Replaced>,
}

#[derive(Debug)]
pub struct Replaced {
    pub id: String,
    /// End of its validity, in ms since 1970.
    pub ends_at: i64,
}

/// Requested rotation of a credential.
#[derive(Clone, Copy, Debug)]
pub struct RotationRequest {
    /// Expiry of the successor in ms since 1970. The inner `None` means never, the outer one the
    /// expiry of the old credential.
    pub expires_at: Option<Option<i64>>,
    /// Time in ms for which the old credential remains valid.
    pub overlap_ms: i64,
}

/// Error codes of a rotation.
pub(super) struct RotationCodes {
    /// The credential is no longer valid.
    pub(super) ended: &'static Code,
    /// An earlier rotation ends it sooner.
    pub(super) scheduled: &'static Code,
}

impl RotationCodes {
    /// Checks the state (409): a credential that has ended cannot be rotated.
    pub(super) fn works(&self, state: CredentialState) -> Result<(), ApiError> {
        if state.works() { Ok(()) } else { Err(ApiError::from(self.ended)) }
    }

    /// Checks the overlap (400): a rotation cannot postpone the end that an earlier one has set.
    pub(super) fn within(
        &self,
        state: CredentialState,
        scheduled: Option<i64>,
        ends_at: i64,
    ) -> Result<(), ApiError> {
        if state == CredentialState::Rotating && scheduled.is_some_and(|scheduled| ends_at > scheduled) {
            return Err(ApiError::from(self.scheduled));
        }
        Ok(())
    }
}
