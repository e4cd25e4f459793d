//! Who asks for an operation, and from where.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use packhouse_app::App;
use packhouse_identity as identity;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{AuditEvent, MemberRow, OrganizationId};
use packhouse_wire::catalogue::{self, Code};

use super::confirmations::Action;
use super::right::{Judged, Right};
use crate::error::ApiError;

/// Where an operation is asked for, whoever asks.
#[derive(Clone)]
pub struct Origin {
    /// The state of the program.
    pub app: Arc<App>,
    /// From which address.
    pub address: IpAddr,
    /// The time of the request, in ms since 1970: the same all through it.
    pub now: i64,
    /// Names the request in its answer, the log and the audit log.
    pub request_id: String,
}

impl Origin {
    /// A request that has just come from this address.
    pub fn new(app: Arc<App>, address: IpAddr, request_id: String) -> Origin {
        let now = app.store.now_ms();
        Origin { app, address, now, request_id }
    }

    /// An event of somebody who has no session, or none yet; `credential` names what was shown, and is no part of it.
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

/// A member's session.
#[derive(Debug)]
pub struct Caller {
    /// The member.
    pub member: MemberRow,
    /// What the member may do.
    pub permissions: Permissions,
    /// SHA-256 of the session's secret.
    pub session: [u8; 32],
}

impl Caller {
    /// Whose session this is the secret of; none when there is none such. 503 where the store cannot be read.
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

/// Names a session in the audit log. It is kept as a hash of 256 random bits, of which this is a part that tells nobody more.
pub fn session_name(session: &[u8; 32]) -> String {
    let [a, b, c, d, e, f, ..] = session;
    format!("session:{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
}

/// A member who asks for an operation. Whatever the member may do is judged here, and recorded.
pub struct Actor {
    /// From where.
    pub origin: Origin,
    caller: Caller,
    judged: Judged,
}

impl Deref for Actor {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.origin
    }
}

impl Actor {
    /// A member with a session. `judged` records what is judged of it.
    pub fn new(origin: Origin, caller: Caller, judged: Judged) -> Actor {
        Actor { origin, caller, judged }
    }

    /// The member.
    pub fn member(&self) -> &MemberRow {
        &self.caller.member
    }

    /// What the member may do.
    pub fn permissions(&self) -> &Permissions {
        &self.caller.permissions
    }

    /// The member's organization.
    pub fn organization(&self) -> OrganizationId {
        self.caller.member.organization
    }

    /// SHA-256 of the session's secret.
    pub fn session(&self) -> &[u8; 32] {
        &self.caller.session
    }

    /// Judges a permission in the organization: 403 `insufficient_permissions` where it is not held. No object decides that, so it
    /// stands before the question whether there is such an object.
    pub fn needs(&self, permission: Permission) -> Result<(), ApiError> {
        if !self.permissions().holds(permission) {
            return Err(ApiError::with(&catalogue::INSUFFICIENT_PERMISSIONS, permission.name()));
        }
        self.judged.note(Right::Holds(permission));
        Ok(())
    }

    /// Judges a right in what was found: `code` where it is not held.
    pub fn judge(&self, held: bool, code: &'static Code) -> Result<(), ApiError> {
        if !held {
            return Err(ApiError::from(code));
        }
        self.judged.note(Right::OfObject);
        Ok(())
    }

    /// Records that the operation is about what every member may do: it concerns the member's own, or only what the member may know
    /// of is shown.
    pub fn judged_own(&self) {
        self.judged.note(Right::OfObject);
    }

    /// Records that this action was confirmed.
    pub(super) fn note_confirmed(&self, action: Action) {
        self.judged.note_confirmed(action);
    }

    /// An event of this member's, to be written with the change that it tells of.
    pub fn event(&self, action: &str, subject: impl Into<String>) -> AuditEvent {
        let credential = session_name(self.session());
        self.event_of(self.organization(), &self.member().email, &credential, action, subject)
    }
}
