//! Password checks, with delays against guessing.

use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{Attempt, Secret, SignInOutcome};
use packhouse_store::MemberRow;
use packhouse_wire::catalogue;

use super::Origin;
use crate::error::ApiError;

/// Returns the members whose password this is. 401 `invalid_credentials` if it is nobody's, 429
/// after too many attempts.
pub(super) async fn check(
    origin: &Origin,
    email: &str,
    password: Secret,
    known: &[MemberRow],
) -> Result<Vec<MemberRow>, ApiError> {
    let attempt = Attempt {
        account: email.to_owned(),
        network: ClientNetwork::of(origin.address),
        password,
        hashes: known.iter().map(|member| member.password_hash.clone()).collect(),
    };
    match origin.app.sign_ins.attempt(attempt).await {
        SignInOutcome::Right(right) => {
            let right = known.iter().zip(right).filter(|(_, right)| *right);
            Ok(right.map(|(member, _)| member.clone()).collect())
        }
        SignInOutcome::Wrong => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
        SignInOutcome::HeldUp(seconds) => Err(ApiError::too_many(seconds)),
        SignInOutcome::Failed => Err(ApiError::from(&catalogue::INTERNAL)),
    }
}
