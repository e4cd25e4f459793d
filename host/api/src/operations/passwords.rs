//! Password checks, with delays against guessing, and the codes of second factors that follow them.

use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{Attempt, CodeOutcome, Factors, Secret, SignInOutcome, SignInSource};
use packhouse_store::{MemberRow, TotpRow};
use packhouse_wire::catalogue;

use super::{Origin, second_factor};
use crate::error::ApiError;

/// A member whose password is right.
pub(super) struct PasswordHolder {
    pub(super) member: MemberRow,
    remaining: Remaining,
}

/// Rest of an authentication after the password.
enum Remaining {
    Nothing,
    /// The throttle has not counted the password as right yet: another member with this e-mail
    /// address has a second factor.
    Counting,
    Code(Box<TotpRow>),
}

impl PasswordHolder {
    /// Returns a member who has proved the password shortly before.
    pub(super) async fn proved(origin: &Origin, member: MemberRow) -> Result<PasswordHolder, ApiError> {
        let factor = second_factor::confirmed(origin, &member).await?;
        let remaining = factor.map_or(Remaining::Nothing, |row| Remaining::Code(Box::new(row)));
        Ok(PasswordHolder { member, remaining })
    }

    /// Returns whether a code must follow the password.
    pub(super) fn needs_code(&self) -> bool {
        matches!(self.remaining, Remaining::Code(_))
    }

    /// Checks the code that must follow the password, and returns the member. 401
    /// `second_factor_required` without a code, 401 `invalid_credentials` for a wrong or used one,
    /// 429 after too many attempts. A member without a second factor needs no code.
    pub(super) async fn complete(
        self,
        origin: &Origin,
        code: Option<&Secret>,
    ) -> Result<MemberRow, ApiError> {
        let PasswordHolder { member, remaining } = self;
        let (network, no_code) = (ClientNetwork::of(origin.address), Secret::new(""));
        let who = SignInSource { account: &member.email, network };
        let sign_ins = &origin.app.sign_ins;
        let count_right = || sign_ins.second_factor(who, &no_code, async { Ok::<bool, ApiError>(true) });
        let outcome = match (&remaining, code) {
            (Remaining::Nothing, _) => return Ok(member),
            (Remaining::Counting, _) => count_right().await?,
            (Remaining::Code(_), None) => return Err(ApiError::from(&catalogue::SECOND_FACTOR_REQUIRED)),
            (Remaining::Code(row), Some(code)) => {
                // The codes of each member have a counter of their own, so that a right password of
                // another member with this e-mail address does not clear it.
                let account = format!("{} {}", member.email, member.id);
                let own = SignInSource { account: &account, network };
                let check = second_factor::accept(origin, &member, row, code);
                let outcome = sign_ins.second_factor(own, code, check).await?;
                if outcome == CodeOutcome::Right {
                    // The code is used up, so that a delay of the address cannot refuse it any
                    // more.
                    count_right().await?;
                }
                outcome
            }
        };
        match outcome {
            CodeOutcome::Right => Ok(member),
            CodeOutcome::Wrong => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
            CodeOutcome::HeldUp(seconds) => Err(ApiError::too_many(seconds)),
        }
    }
}

/// Returns the members whose password this is. 401 `invalid_credentials` if it is nobody's, 429
/// after too many attempts. A session or a confirmation also needs [`PasswordHolder::complete`].
pub(super) async fn check(
    origin: &Origin,
    email: &str,
    password: Secret,
    known: &[MemberRow],
) -> Result<Vec<PasswordHolder>, ApiError> {
    let mut confirmed = Vec::with_capacity(known.len());
    for member in known {
        confirmed.push(second_factor::confirmed(origin, member).await?);
    }
    let any = confirmed.iter().any(Option::is_some);
    let attempt = Attempt {
        account: email.to_owned(),
        network: ClientNetwork::of(origin.address),
        password,
        hashes: known.iter().map(|member| member.password_hash.clone()).collect(),
        factors: if any { Factors::PasswordAndCode } else { Factors::Password },
    };
    let right = match origin.app.sign_ins.attempt(attempt).await {
        SignInOutcome::Right(right) => right,
        SignInOutcome::Wrong => return Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
        SignInOutcome::HeldUp(seconds) => return Err(ApiError::too_many(seconds)),
        SignInOutcome::Failed => return Err(ApiError::from(&catalogue::INTERNAL)),
    };
    let all = known.iter().zip(confirmed).zip(right).filter(|(_, right)| *right);
    let holder = |((member, factor), _): ((&MemberRow, Option<TotpRow>), bool)| {
        let remaining = match factor {
            Some(row) => Remaining::Code(Box::new(row)),
            None if any => Remaining::Counting,
            None => Remaining::Nothing,
        };
        PasswordHolder { member: member.clone(), remaining }
    };
    Ok(all.map(holder).collect())
}

/// Checks one member's password and, if the member has a second factor, the code. Refuses as
/// [`check`] and [`PasswordHolder::complete`].
pub(super) async fn authenticate(
    origin: &Origin,
    member: &MemberRow,
    password: Secret,
    code: Option<&Secret>,
) -> Result<(), ApiError> {
    let holders = check(origin, &member.email, password, std::slice::from_ref(member)).await?;
    let holder = holders.into_iter().next().ok_or(&catalogue::INVALID_CREDENTIALS)?;
    holder.complete(origin, code).await.map(drop)
}
