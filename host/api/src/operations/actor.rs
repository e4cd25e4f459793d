//! Caller of an operation, and the origin of the request.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use packhouse_app::App;
use packhouse_app::links::Side;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{ApiTokenRow, AuditEvent, MemberKind, MemberRow, OrganizationId, OrganizationRow};
use packhouse_wire::catalogue::{self, Code};
use packhouse_wire::site::Site;

use super::caller::{Caller, CallerCredential};
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

    pub fn credential(&self) -> &CallerCredential {
        &self.caller.credential
    }

    /// SHA-256 of the session's secret; `None` if the credential is an API token.
    pub fn session(&self) -> Option<&[u8; 32]> {
        match self.credential() {
            CallerCredential::Session(sha256) => Some(sha256),
            CallerCredential::ApiToken(_) => None,
        }
    }

    /// API token of the request; `None` if the credential is a session.
    pub fn api_token(&self) -> Option<&ApiTokenRow> {
        match self.credential() {
            CallerCredential::Session(_) => None,
            CallerCredential::ApiToken(token) => Some(token.as_ref()),
        }
    }

    /// SHA-256 of the session's secret. 403 `scope_mismatch_api` if the credential is an API token,
    /// which may not do what belongs to a session.
    pub(super) fn needs_session(&self) -> Result<&[u8; 32], ApiError> {
        self.session().ok_or_else(|| ApiError::with(&catalogue::SCOPE_MISMATCH_API, "it needs a session"))
    }

    /// 403 `role_mismatch` if the actor is a service account: it cannot have what belongs to a
    /// person, such as tokens for repositories.
    pub(super) fn needs_person(&self) -> Result<(), ApiError> {
        match self.member().kind {
            MemberKind::Person => Ok(()),
            MemberKind::Service => Err(ApiError::from(&catalogue::ROLE_MISMATCH)),
        }
    }

    /// Name in the audit log: a member's e-mail address, or the name of a service account.
    pub fn name(&self) -> &str {
        self.caller.name()
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

    /// Audit event of this caller, to be written together with the change.
    pub fn event(&self, action: &str, subject: impl Into<String>) -> AuditEvent {
        self.event_of(self.organization(), self.name(), &self.credential().name(), action, subject)
    }
}
