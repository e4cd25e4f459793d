//! What tokens and access keys have in common: each is made with a secret that is told once, and rotated with an overlap.

use packhouse_identity::Secret;
use packhouse_identity::access::State;
use packhouse_wire::catalogue::Code;

use crate::error::ApiError;

/// A credential that was just made.
pub struct NewCredential<R> {
    /// Its row.
    pub row: R,
    /// Its secret, told this once; none where the actor is not the one who may use it.
    pub secret: Option<Secret>,
    /// What it takes the place of, after a rotation.
    pub replaced: Option<Replaced>,
}

/// The credential that was rotated.
#[derive(Debug)]
pub struct Replaced {
    /// Its id.
    pub id: String,
    /// Until when it works, in ms since 1970.
    pub ends_at: i64,
}

/// How a credential is to be rotated.
#[derive(Clone, Copy, Debug)]
pub struct RotationRequest {
    /// When the successor expires, in ms since 1970, or never; none: when the old one does.
    pub expires_at: Option<Option<i64>>,
    /// For how long the old one works on, in ms.
    pub overlap_ms: i64,
}

/// The codes with which a credential's rotation is refused.
pub(super) struct RotationCodes {
    /// It does not work any more.
    pub(super) ended: &'static Code,
    /// An earlier rotation ends it before.
    pub(super) scheduled: &'static Code,
}

impl RotationCodes {
    /// State (409): a credential that has ended cannot be rotated.
    pub(super) fn works(&self, state: State) -> Result<(), ApiError> {
        if state.works() { Ok(()) } else { Err(ApiError::from(self.ended)) }
    }

    /// What depends on state (400): no rotation puts off the end that an earlier one has set.
    pub(super) fn within(&self, state: State, scheduled: Option<i64>, ends_at: i64) -> Result<(), ApiError> {
        if state == State::Rotating && scheduled.is_some_and(|scheduled| ends_at > scheduled) {
            return Err(ApiError::from(self.scheduled));
        }
        Ok(())
    }
}
