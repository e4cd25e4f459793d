//! Caller of an operation, and the origin of the request.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use packhouse_app::App;
use packhouse_app::links::Side;
use packhouse_identity as identity;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{AuditEvent, MemberRow, OrganizationId, OrganizationRow};
use packhouse_wire::catalogue::{self, Code};
use packhouse_wire::site::Site;

use super::confirmations::Action;
use super::right::{CheckedRights, Right};
use crate::error::ApiError;

/// Origin of a request, with or without a session.
#[derive(Clone)]
pub struct Origin {
    pub app: Arc<App>,
    pub address: IpAddr,
    /// Time of the request in ms since 1970; the same for the whole request.
    pub now: i64,
    /// Id of the request in the response, the log and the audit log.
    pub request_id: String,
    /// Site that the request addressed. Links use it if no public address is configured. `None` for
    /// operations that no client requested.
    pub site: Option<Site>,
}

impl Origin {
    /// Origin of a request that arrived now from this address.
    pub fn new(app: Arc<App>, address: IpAddr, request_id: String) -> Origin {
        let now = app.store.now_ms();
        Origin { app, address, now, request_id, site: None }
    }

    /// Sets the site of the request.
    #[must_use]
    pub fn at(self, site: Option<Site>) -> Origin {
        Origin { site, ..self }
    }

    /// Start of links to the portal and the API, without a trailing slash.
    pub fn api_url(&self) -> String {
        self.app.api_url_at(self.site.as_ref(), Side::Api)
    }

    /// Start of links to the organization's repositories, without a trailing slash.
    pub fn base_url(&self, organization: Option<&OrganizationRow>) -> String {
        self.app.base_url_at(organization, self.site.as_ref(), Side::Api)
    }

    /// Audit event of a person without a session. `credential` names the presented credential and
    /// does not contain it.
    pub fn event_of(
        &self,
        organization: OrganizationId,
        actor: &str,
        credential: &str,
        action: &str,
        subject: impl Into<String>,
    ) -> AuditEvent {
        AuditEvent {
            organization,
            actor: actor.to_owned(),
            credential: credential.to_owned(),
            action: action.to_owned(),
            subject: subject.into(),
            address: self.address.to_string(),
            request_id: self.request_id.clone(),
            detail: String::new(),
        }
    }
}

/// Signed-in member with permissions and session.
#[derive(Debug)]
pub struct Caller {
    pub member: MemberRow,
    pub permissions: Permissions,
    /// SHA-256 of the session's secret.
    pub session: [u8; 32],
}

impl Caller {
    /// Finds the member whose session has this secret. 503 if the store cannot be read.
    pub async fn of(app: &App, secret: &str) -> Result<Option<Caller>, ApiError> {
        let Some(sha256) = identity::fingerprint(secret) else { return Ok(None) };
        let Some((session, member)) = app.store.find_session(&sha256, app.store.now_ms()).await? else {
            return Ok(None);
        };
        let first = app.first_organization().await? == Some(member.organization);
        let permissions = Permissions::read(&member.permissions).of_organization(first);
        Ok(Some(Caller { member, permissions, session: session.secret_sha256 }))
    }
}

/// Name of a session in the audit log: a part of the stored hash of 256 random bits. It reveals
/// nothing about the secret.
pub fn session_name(session: &[u8; 32]) -> String {
    let [a, b, c, d, e, f, ..] = session;
    format!("session:{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
}

/// Signed-in caller of an operation. It checks the caller's rights and records the checks.
pub struct Actor {
    pub origin: Origin,
    caller: Caller,
    judged: CheckedRights,
}

impl Deref for Actor {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.origin
    }
}

impl Actor {
    /// Creates the actor. `judged` records its checks.
    pub fn new(origin: Origin, caller: Caller, judged: CheckedRights) -> Actor {
        Actor { origin, caller, judged }
    }

    pub fn member(&self) -> &MemberRow {
        &self.caller.member
    }

    pub fn permissions(&self) -> &Permissions {
        &self.caller.permissions
    }

    pub fn organization(&self) -> OrganizationId {
        self.caller.member.organization
    }

    /// SHA-256 of the session's secret.
    pub fn session(&self) -> &[u8; 32] {
        &self.caller.session
    }

    /// Checks a permission in the organization; otherwise 403 `insufficient_permissions`. It does
    /// not depend on an object, so it is checked before the object is looked up.
    pub fn needs(&self, permission: Permission) -> Result<(), ApiError> {
        if !self.permissions().holds(permission) {
            return Err(ApiError::with(&catalogue::INSUFFICIENT_PERMISSIONS, permission.name()));
        }
        self.judged.note(Right::Holds(permission));
        Ok(())
    }

    /// Checks a right to a found object: refuses with `code` unless `held`.
    pub fn judge(&self, held: bool, code: &'static Code) -> Result<(), ApiError> {
        if !held {
            return Err(ApiError::from(code));
        }
        self.judged.note(Right::OfObject);
        Ok(())
    }

    /// Records that the operation needs no further right: it concerns the member's own data, or
    /// returns only what the member may see.
    pub fn judged_own(&self) {
        self.judged.note(Right::OfObject);
    }

    /// Records that this action was confirmed.
    pub(super) fn note_confirmed(&self, action: Action) {
        self.judged.note_confirmed(action);
    }

    /// Audit event of this member, to be written together with the change.
    pub fn event(&self, action: &str, subject: impl Into<String>) -> AuditEvent {
        let credential = session_name(self.session());
        self.event_of(self.organization(), &self.member().email, &credential, action, subject)
    }
}
