//! Callers of operations: signed-in members and service accounts, with the credential of the
//! request.

use packhouse_app::App;
use packhouse_identity as identity;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{ApiTokenRow, MemberKind, MemberRow};
use packhouse_wire::catalogue;

use crate::error::ApiError;

/// Member or service account with its effective permissions and the credential of the request.
#[derive(Debug)]
pub struct Caller {
    pub member: MemberRow,
    /// The member's own permissions and those of the member's teams.
    pub permissions: Permissions,
    pub credential: CallerCredential,
}

/// Credential with which a caller is signed in.
#[derive(Debug)]
pub enum CallerCredential {
    /// SHA-256 of a session's secret.
    Session([u8; 32]),
    ApiToken(Box<ApiTokenRow>),
}

impl CallerCredential {
    /// Name in the audit log. It reveals nothing about the secret.
    pub fn name(&self) -> String {
        match self {
            CallerCredential::Session(sha256) => session_name(sha256),
            CallerCredential::ApiToken(token) => format!("api-token:{}", token.id),
        }
    }
}

/// Name of a session in the audit log: a part of the stored hash of 256 random bits. It reveals
/// nothing about the secret.
pub fn session_name(session: &[u8; 32]) -> String {
    let [a, b, c, d, e, f, ..] = session;
    format!("session:{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
}

impl Caller {
    /// Finds the member whose session has this secret; `None` if the member is suspended. 503 if
    /// the store cannot be read.
    pub async fn of(app: &App, secret: &str) -> Result<Option<Caller>, ApiError> {
        let Some(sha256) = identity::fingerprint(secret) else { return Ok(None) };
        let Some((session, member)) = app.store.find_session(&sha256, app.store.now_ms()).await? else {
            return Ok(None);
        };
        if !member.active {
            return Ok(None);
        }
        let permissions = effective_permissions(app, &member).await?;
        Ok(Some(Caller { member, permissions, credential: CallerCredential::Session(session.secret_sha256) }))
    }

    /// Finds the owner of an API token; `None` if the token is unknown. 401 `not_signed_in` with
    /// the reason if the token has ended or its owner is suspended. 503 if the store cannot be
    /// read.
    pub async fn of_api_token(app: &App, secret: &str) -> Result<Option<Caller>, ApiError> {
        let Some(sha256) = identity::fingerprint(secret) else { return Ok(None) };
        let Some((token, member)) = app.store.api_token_by_secret(&sha256).await? else { return Ok(None) };
        let now = app.store.now_ms();
        if let Some(reason) = refusal(&token, &member, now) {
            let code = &catalogue::NOT_SIGNED_IN;
            return Err(ApiError::Refused { code, message: reason.to_owned(), retry_after: None });
        }
        app.store.api_token_used(token.id, now);
        let permissions = effective_permissions(app, &member).await?;
        Ok(Some(Caller { member, permissions, credential: CallerCredential::ApiToken(Box::new(token)) }))
    }

    /// Name in the audit log: a member's e-mail address, or the name of a service account.
    pub fn name(&self) -> &str {
        name_of(&self.member)
    }
}

/// Name of a member in the audit log: the e-mail address of a person, or the name of a service
/// account.
pub(super) fn name_of(member: &MemberRow) -> &str {
    match member.kind {
        MemberKind::Person => &member.email,
        MemberKind::Service => &member.name,
    }
}

/// Returns why an API token of this owner is refused at `now` (ms since 1970), if it is.
fn refusal(token: &ApiTokenRow, owner: &MemberRow, now: i64) -> Option<&'static str> {
    match () {
        () if token.ends_at.is_some_and(|at| at <= now) => {
            Some("This API token was replaced by a rotation; use its successor.")
        }
        () if token.revoked_at.is_some() => Some("This API token was revoked."),
        () if token.expires_at <= now => Some("This API token has expired."),
        () if !owner.active => Some("The account of this credential is suspended."),
        () => None,
    }
}

/// Permissions of a member at the moment. An owner of the first organization manages the server
/// implicitly, but a service account manages it only if its permissions name that right.
async fn effective_permissions(app: &App, member: &MemberRow) -> Result<Permissions, ApiError> {
    let first = app.first_organization().await? == Some(member.organization);
    let permissions = Permissions::of_member(member);
    let may_manage = member.kind == MemberKind::Person || permissions.holds(Permission::ManageServer);
    Ok(permissions.of_organization(first && may_manage))
}

#[cfg(test)]
mod tests {
    use packhouse_store::{ApiTokenId, MemberId, OrganizationId};

    use super::*;

    fn token() -> ApiTokenRow {
        ApiTokenRow {
            id: ApiTokenId(1),
            organization: OrganizationId(1),
            owner: MemberId(1),
            secret_sha256: [0; 32],
            name: "ci".to_owned(),
            scopes: vec!["read".to_owned()],
            sensitive: Vec::new(),
            created_by: "owner@example.com".to_owned(),
            expires_at: 100,
            ends_at: None,
            revoked_at: None,
            created_at: 0,
            last_used_at: None,
        }
    }

    fn owner(active: bool) -> MemberRow {
        MemberRow {
            id: MemberId(1),
            organization: OrganizationId(1),
            email: "owner@example.com".to_owned(),
            name: String::new(),
            password_hash: String::new(),
            permissions: String::new(),
            created_at: 0,
            kind: MemberKind::Person,
            active,
            external_id: None,
            team_permissions: String::new(),
        }
    }

    #[test]
    fn the_refusal_of_a_token_says_which_end_it_has() {
        let refused = |token: ApiTokenRow| refusal(&token, &owner(true), 100).unwrap_or("valid").to_owned();
        assert!(refused(token()).contains("expired"));
        let token = || ApiTokenRow { expires_at: 101, ..token() };
        assert_eq!(refused(token()), "valid");
        assert!(refused(ApiTokenRow { revoked_at: Some(1), ..token() }).contains("revoked"));
        assert!(refused(ApiTokenRow { ends_at: Some(100), ..token() }).contains("rotation"));
        assert!(
            refused(ApiTokenRow { ends_at: Some(100), revoked_at: Some(100), ..token() })
                .contains("rotation")
        );
        assert_eq!(refused(ApiTokenRow { ends_at: Some(101), ..token() }), "valid");
        assert!(refusal(&token(), &owner(false), 100).unwrap().contains("suspended"));
    }
}
