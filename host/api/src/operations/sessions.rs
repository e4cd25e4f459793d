//! Sign-in, sign-out and the caller's sessions.

use packhouse_app::sso;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{MemberId, MemberRow, OrganizationId, Refusal, SessionRow};
use packhouse_wire::catalogue;

use super::passwords::{self, PasswordHolder};
use super::pending_sign_in::PendingSignIn;
use super::{Actor, Origin, session_name};
use crate::error::ApiError;

/// Lifetime of a session: 12 hours in ms.
pub const SESSION_MS: i64 = 12 * 60 * 60 * 1000;

#[derive(Debug)]
pub struct SignIn {
    /// E-mail address, not yet normalized.
    pub email: String,
    pub password: Secret,
    /// Code of the second factor, or a recovery code.
    pub code: Option<Secret>,
    /// Name or id of the organization; required if the e-mail address belongs to several.
    pub organization: Option<String>,
}

/// New session of a member.
#[derive(Debug)]
pub struct SignedIn {
    pub secret: Secret,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
    pub member: MemberRow,
}

/// Result of a sign-in with a right password.
pub enum SignInStep {
    Done(Box<SignedIn>),
    /// A code must follow. [`resume`] continues the sign-in with the sealed value.
    CodeRequired(Secret),
}

/// Signs in with e-mail address and password, and with the code of the second factor if the member
/// has one. `organization` selects one of several. 401 `invalid_credentials`, 429, 400
/// `organization_required`, 403 `member_suspended`, or 401 `second_factor_required`. The last three
/// are told only to the right password.
pub async fn sign_in(origin: &Origin, sign_in: SignIn) -> Result<SignedIn, ApiError> {
    let code = sign_in.code.clone();
    let holder = check_password(origin, sign_in).await?;
    complete(origin, holder, code.as_ref()).await
}

/// Signs in like [`sign_in`], but returns a value to continue with if a code must follow the
/// password and is missing.
pub async fn begin_sign_in(origin: &Origin, sign_in: SignIn) -> Result<SignInStep, ApiError> {
    let code = sign_in.code.clone();
    let holder = check_password(origin, sign_in).await?;
    if holder.needs_code() && code.is_none() {
        let pending = PendingSignIn::of(&holder.member, origin.now);
        return Ok(SignInStep::CodeRequired(pending.seal(&origin.app.sealer)?));
    }
    let signed_in = complete(origin, holder, code.as_ref()).await?;
    Ok(SignInStep::Done(Box::new(signed_in)))
}

/// Continues a sign-in with the code. `None` if the password was entered too long ago, or was
/// changed in the meantime. Refuses like [`sign_in`].
pub async fn resume(origin: &Origin, sealed: &Secret, code: &Secret) -> Result<Option<SignedIn>, ApiError> {
    let Some(pending) = PendingSignIn::open(&origin.app.sealer, sealed, origin.now) else { return Ok(None) };
    let store = &origin.app.store;
    let (organization, id) = (OrganizationId(pending.organization), MemberId(pending.member));
    let member = store.find_member(organization, id).await?.filter(|member| pending.is_of(member));
    let settings = store.sso_settings(organization).await?;
    let Some(member) = member.filter(|member| sso::allows_password(settings.as_deref(), member)) else {
        return Ok(None);
    };
    check_active(origin, &member)?;
    let holder = PasswordHolder::proved(origin, member).await?;
    complete(origin, holder, Some(code)).await.map(Some)
}

/// Checks e-mail address and password, and selects the member.
async fn check_password(origin: &Origin, sign_in: SignIn) -> Result<PasswordHolder, ApiError> {
    let SignIn { email, password, organization, .. } = sign_in;
    let email = identity::email(&email).unwrap_or_default();
    let known = origin.app.store.members_signing_in(&email).await?;
    let known: Vec<MemberRow> = known
        .into_iter()
        .filter(|(row, settings)| sso::allows_password(settings.as_deref(), row))
        .map(|(row, _)| row)
        .collect();
    let holders = match passwords::check(origin, &email, password, &known).await {
        Ok(holders) => holders,
        Err(error) => {
            count_refusal(origin, &error, &known);
            return Err(error);
        }
    };
    let holder = choose(origin, holders, organization.as_deref()).await?;
    check_active(origin, &holder.member)?;
    Ok(holder)
}

/// Checks the code that must follow the password, and creates the session.
async fn complete(
    origin: &Origin,
    holder: PasswordHolder,
    code: Option<&Secret>,
) -> Result<SignedIn, ApiError> {
    let known = holder.member.clone();
    match holder.complete(origin, code).await {
        Ok(member) => begin(origin, member).await,
        Err(error) => {
            // A sign-in in two steps always reaches the request for the code once.
            if code.is_some() {
                count_refusal(origin, &error, std::slice::from_ref(&known));
            }
            Err(error)
        }
    }
}

/// Refuses a suspended member with 403 `member_suspended`, and counts the attempt for the audit
/// log. Only the right password may reach this check.
pub(super) fn check_active(origin: &Origin, member: &MemberRow) -> Result<(), ApiError> {
    if member.active {
        return Ok(());
    }
    let error = ApiError::from(&catalogue::MEMBER_SUSPENDED);
    count_refusal(origin, &error, std::slice::from_ref(member));
    Err(error)
}

/// Creates a session for a member who has just authenticated.
pub async fn begin(origin: &Origin, member: MemberRow) -> Result<SignedIn, ApiError> {
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = origin.now + SESSION_MS;
    let credential = session_name(&sha256);
    let event = origin.event_of(member.organization, &member.email, &credential, "sign_in", &member.email);
    let row = SessionRow {
        secret_sha256: sha256,
        organization: member.organization,
        member: member.id,
        created_at: origin.now,
        expires_at,
    };
    origin.app.store.create_session(row, Some(event)).await?;
    Ok(SignedIn { secret, expires_at, member })
}

pub async fn sign_out(actor: &Actor) -> Result<(), ApiError> {
    actor.judged_own();
    let event = actor.event("sign_out", actor.member().email.clone());
    actor.app.store.delete_session(actor.needs_session()?, Some(event)).await?;
    Ok(())
}

/// Returns the actor's sessions that have not ended, newest first.
pub async fn list(actor: &Actor) -> Result<Vec<SessionRow>, ApiError> {
    actor.judged_own();
    Ok(actor.app.store.list_sessions(actor.member().id, actor.now).await?)
}

/// Ends one of the actor's sessions by its id ([`session_id`]): 404 `not_found` for any other id.
pub async fn end(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let own = list(actor).await?;
    let found = own.into_iter().find(|row| session_id(&row.secret_sha256) == id);
    let found = found.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let event = actor.event("end_session", session_name(&found.secret_sha256));
    if actor.app.store.delete_session(&found.secret_sha256, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Id of a session, made from its stored hash. It cannot be used to sign in.
pub fn session_id(sha256: &[u8; 32]) -> String {
    hex::encode(sha256.iter().take(16).copied().collect::<Vec<u8>>())
}

/// Selects the member in the named organization, or the only one.
async fn choose(
    origin: &Origin,
    holders: Vec<PasswordHolder>,
    named: Option<&str>,
) -> Result<PasswordHolder, ApiError> {
    let organization = match named {
        None => None,
        Some(named) => {
            let all = origin.app.store.organizations().await?;
            let found = all.into_iter().find(|row| row.name == named || row.id.to_string() == named);
            Some(found.ok_or(&catalogue::INVALID_CREDENTIALS)?.id)
        }
    };
    let is_named = |holder: &PasswordHolder| organization.is_none_or(|id| holder.member.organization == id);
    let mut holders = holders.into_iter().filter(is_named);
    match (holders.next(), holders.next()) {
        (Some(holder), None) => Ok(holder),
        (Some(_), Some(_)) => Err(ApiError::from(&catalogue::ORGANIZATION_REQUIRED)),
        (None, _) => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
    }
}

/// Counts a refused attempt in each organization that has this member.
fn count_refusal(origin: &Origin, error: &ApiError, known: &[MemberRow]) {
    let Some(code) = error.code() else { return };
    for member in known {
        let refusal = Refusal {
            organization: Some(member.organization),
            actor: member.email.clone(),
            credential: format!("member:{}", member.id),
            address: origin.address.to_string(),
            code: code.code.to_owned(),
        };
        origin.app.store.refused(refusal, origin.now);
    }
}
