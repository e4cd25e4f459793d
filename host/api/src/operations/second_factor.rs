//! Second factors: codes of an authenticator app that follow the password, and recovery codes for a
//! member who has lost the app.
//!
//! A second factor belongs to the password of this server. A sign-in through a provider needs no
//! code, because the provider decides about further factors. Tokens need none either.

use packhouse_app::{App, sso};
use packhouse_identity::{EnteredCode, RecoveryCode, Secret, TotpSecret, mint_recovery_codes};
use packhouse_store::{MemberRow, TotpRow};
use packhouse_wire::catalogue;

use super::caller::{Caller, CallerCredential};
use super::{Actor, Origin, members, passwords};
use crate::error::ApiError;

/// Name of this server in authenticator apps, before its host.
const ISSUER: &str = "Packhouse";

/// State of a member's second factor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecondFactorState {
    /// The member signs in with the password alone.
    None,
    /// The member has begun to set one up and has not confirmed it. Sign-ins need no code yet.
    Unconfirmed,
    /// Sign-ins need a code of the app or a recovery code.
    Confirmed {
        /// Number of unused recovery codes.
        recovery_codes: usize,
    },
}

/// Secret that an authenticator app needs.
pub struct NewSecondFactor {
    /// Secret of the app, in base32.
    pub secret: Secret,
    /// Address that contains the secret, for apps that read it as a link or a QR code.
    pub otpauth_url: Secret,
}

/// Returns the state of the actor's own second factor.
pub async fn state(actor: &Actor) -> Result<SecondFactorState, ApiError> {
    actor.judged_own();
    let row = actor.app.store.totp(actor.member().id).await?;
    Ok(match row {
        None => SecondFactorState::None,
        Some(row) if row.confirmed_at.is_none() => SecondFactorState::Unconfirmed,
        Some(row) => SecondFactorState::Confirmed { recovery_codes: row.recovery.len() },
    })
}

/// Begins to set up the actor's own second factor. It replaces one that is not confirmed. 400
/// `invalid_request` without a password, 409 `servers_too_old`, 409
/// `second_factor_already_set_up`.
pub async fn begin(actor: &Actor) -> Result<NewSecondFactor, ApiError> {
    actor.judged_own();
    actor.needs_session()?;
    let (member, store) = (actor.member(), &actor.app.store);
    if member.password_hash.is_empty() {
        return Err(ApiError::invalid(
            "This account has no password, so no code can follow it. Your organization's provider signs you in.",
        ));
    }
    members::servers_know(actor, "second factors").await?;
    let secret = TotpSecret::random();
    let sealed = secret.seal(&actor.app.sealer, member.id).map_err(anyhow::Error::from)?;
    if !store.begin_totp(member.id, sealed.as_bytes()).await? {
        return Err(ApiError::from(&catalogue::SECOND_FACTOR_ALREADY_SET_UP));
    }
    Ok(new_second_factor(actor, &secret))
}

/// Returns the secret that the actor has not confirmed yet, so that a page can show it again.
pub async fn unconfirmed(actor: &Actor) -> Result<Option<NewSecondFactor>, ApiError> {
    actor.judged_own();
    actor.needs_session()?;
    let row = actor.app.store.totp(actor.member().id).await?;
    let Some(row) = row.filter(|row| row.confirmed_at.is_none()) else { return Ok(None) };
    Ok(Some(new_second_factor(actor, &open(actor, &row)?)))
}

/// Confirms the second factor with a first code, and returns the recovery codes, which are shown
/// only once. From now on, sign-ins and confirmations by password need a code. 404 `not_found` if
/// none was begun, 409 `second_factor_already_set_up`, 400 `invalid_code`.
pub async fn confirm(actor: &Actor, code: &Secret) -> Result<Vec<Secret>, ApiError> {
    actor.judged_own();
    actor.needs_session()?;
    let (member, store) = (actor.member(), &actor.app.store);
    let row = store.totp(member.id).await?.ok_or(&catalogue::NOT_FOUND)?;
    if row.confirmed_at.is_some() {
        return Err(ApiError::from(&catalogue::SECOND_FACTOR_ALREADY_SET_UP));
    }
    let wrong = || ApiError::from(&catalogue::INVALID_SECOND_FACTOR_CODE);
    let Some(EnteredCode::App(digits)) = EnteredCode::read(code) else { return Err(wrong()) };
    let step = open(actor, &row)?.step_of(&digits, actor.now).ok_or_else(wrong)?;
    let minted = mint_recovery_codes();
    let hashes: Vec<String> = minted.iter().map(|one| one.sha256.clone()).collect();
    let event = actor.event("set_up_second_factor", member.email.clone());
    if !store.confirm_totp(&row, step, &hashes, actor.now, Some(event)).await? {
        // Another call has replaced the secret in the meantime.
        return Err(wrong());
    }
    Ok(minted.into_iter().map(|RecoveryCode { code, .. }| code).collect())
}

/// Removes the actor's own second factor, with password and code. 401 as for a sign-in, 404
/// `not_found` if the actor has none, 409 `second_factor_required` if the organization requires
/// one.
pub async fn remove(actor: &Actor, password: Secret, code: Option<&Secret>) -> Result<(), ApiError> {
    actor.judged_own();
    actor.needs_session()?;
    let member = actor.member();
    passwords::authenticate(actor, member, password, code).await?;
    if !actor.app.store.has_totp(member.id).await? {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    check_removal_of_own(actor).await?;
    delete(actor, member).await
}

/// Refuses with 409 `second_factor_required` if the actor's organization requires a second factor,
/// so that members cannot remove their own.
pub(super) async fn check_removal_of_own(actor: &Actor) -> Result<(), ApiError> {
    let all = actor.app.store.organizations().await?;
    let own = all.into_iter().find(|row| row.id == actor.organization());
    if own.is_some_and(|row| row.require_second_factor) {
        return Err(ApiError::from(&catalogue::SECOND_FACTOR_DEMANDED));
    }
    Ok(())
}

/// Deletes the second factor of a member. 404 `not_found` if the member has none.
pub(super) async fn delete(actor: &Actor, member: &MemberRow) -> Result<(), ApiError> {
    let event = actor.event("remove_second_factor", member.email.clone());
    if actor.app.store.delete_totp(member.organization, member.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Returns the member's second factor if sign-ins need its code.
pub(super) async fn confirmed(origin: &Origin, member: &MemberRow) -> Result<Option<TotpRow>, ApiError> {
    let row = origin.app.store.totp(member.id).await?;
    Ok(row.filter(|row| row.confirmed_at.is_some()))
}

/// Accepts a code of the app or a recovery code, each once. Returns false for any other.
pub(super) async fn accept(
    origin: &Origin,
    member: &MemberRow,
    row: &TotpRow,
    code: &Secret,
) -> Result<bool, ApiError> {
    let store = &origin.app.store;
    match EnteredCode::read(code) {
        Some(EnteredCode::App(digits)) => match open(origin, row)?.step_of(&digits, origin.now) {
            Some(step) => Ok(store.use_totp_step(member.id, step).await?),
            None => Ok(false),
        },
        Some(EnteredCode::Recovery(sha256)) if row.recovery.contains(&sha256) => {
            let email = &member.email;
            let event = origin.event_of(member.organization, email, "password", "use_recovery_code", email);
            Ok(store.use_recovery_code(member.id, &sha256, Some(event)).await?)
        }
        Some(EnteredCode::Recovery(_)) | None => Ok(false),
    }
}

/// Returns whether this caller may only set up a second factor: the organization requires one, and
/// the caller has signed in to an account that has a password and no second factor. An account that
/// may sign in only through a provider needs none, and tokens stay valid.
pub async fn is_missing(app: &App, caller: &Caller) -> Result<bool, ApiError> {
    let member = &caller.member;
    let by_session = matches!(caller.credential, CallerCredential::Session(_));
    if !by_session || member.password_hash.is_empty() || !app.store.lacks_required_factor(member.id).await? {
        return Ok(false);
    }
    let settings = app.store.sso_settings(member.organization).await?;
    Ok(sso::allows_password(settings.as_deref(), member))
}

fn open(origin: &Origin, row: &TotpRow) -> Result<TotpSecret, ApiError> {
    let opened = TotpSecret::open(&origin.app.sealer, row.member, &row.secret);
    opened.map_err(|error| ApiError::Internal(error.into()))
}

fn new_second_factor(actor: &Actor, secret: &TotpSecret) -> NewSecondFactor {
    let address = url::Url::parse(&actor.api_url()).ok();
    // The separator of issuer and account must not be part of the issuer, and an IPv6 address
    // contains it.
    let host = address.as_ref().and_then(url::Url::host_str).filter(|host| !host.contains(':'));
    let issuer = host.map_or_else(|| ISSUER.to_owned(), |host| format!("{ISSUER} ({host})"));
    NewSecondFactor {
        secret: secret.base32(),
        otpauth_url: secret.otpauth_url(&issuer, &actor.member().email),
    }
}
