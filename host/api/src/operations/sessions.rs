//! Sign-in, sign-out and the caller's sessions.

use packhouse_app::sso;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{MemberRow, Refusal, SessionRow};
use packhouse_wire::catalogue;

use super::{Actor, Origin, passwords, session_name};
use crate::error::ApiError;

/// Lifetime of a session: 12 hours in ms.
pub const SESSION_MS: i64 = 12 * 60 * 60 * 1000;

#[derive(Debug)]
pub struct SignIn {
    /// E-mail address, not yet normalized.
    pub email: String,
    pub password: Secret,
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

/// Signs in with e-mail address and password. `organization` selects one of several. 401
/// `invalid_credentials`, 429, or 400 `organization_required`.
pub async fn sign_in(origin: &Origin, sign_in: SignIn) -> Result<SignedIn, ApiError> {
    let SignIn { email, password, organization } = sign_in;
    let email = identity::email(&email).unwrap_or_default();
    let known = origin.app.store.members_signing_in(&email).await?;
    let known: Vec<MemberRow> = known
        .into_iter()
        .filter(|(row, settings)| sso::allows_password(settings.as_deref(), row))
        .map(|(row, _)| row)
        .collect();
    let members = match passwords::check(origin, &email, password, &known).await {
        Ok(members) => members,
        Err(error) => {
            count_refusal(origin, &error, &known);
            return Err(error);
        }
    };
    let member = choose(origin, members, organization.as_deref()).await?;
    begin(origin, member).await
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
    actor.app.store.delete_session(actor.session(), Some(event)).await?;
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
    members: Vec<MemberRow>,
    named: Option<&str>,
) -> Result<MemberRow, ApiError> {
    let organization = match named {
        None => None,
        Some(named) => {
            let all = origin.app.store.organizations().await?;
            let found = all.into_iter().find(|row| row.name == named || row.id.to_string() == named);
            Some(found.ok_or(&catalogue::INVALID_CREDENTIALS)?.id)
        }
    };
    let mut members = members.into_iter().filter(|row| organization.is_none_or(|id| row.organization == id));
    match (members.next(), members.next()) {
        (Some(member), None) => Ok(member),
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
