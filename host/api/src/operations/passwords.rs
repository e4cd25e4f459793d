//! Whether a password is right, with what holds guessing up.

use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{Attempt, Outcome, Secret};
use packhouse_store::MemberRow;
use packhouse_wire::catalogue;

use super::Origin;
use crate::error::ApiError;

/// Those of the members whose password it is; 401 `invalid_credentials` for none, 429 when it was tried too often.
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
        Outcome::Right(right) => {
            let right = known.iter().zip(right).filter(|(_, right)| *right);
            Ok(right.map(|(member, _)| member.clone()).collect())
        }
        Outcome::Wrong => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
        Outcome::HeldUp(seconds) => Err(ApiError::too_many(seconds)),
        Outcome::Failed => Err(ApiError::from(&catalogue::INTERNAL)),
    }
}
