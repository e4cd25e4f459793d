//! What a form of a page says, judged as the body of the call would be: the same shapes, the same order, the same codes and sentences.
//! A page makes the body out of its fields, and calls the operation with what comes out here.

use http::HeaderMap;
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permissions;
use packhouse_runtime::Description;
use packhouse_store::{AuditRow, KeyOwnerKind, NewRepository};
use packhouse_upstream::credentials::Credentials;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access_keys::bodies::{ChangeAccessKey, CreateAccessKey};
use crate::audit::EventView;
use crate::body::CallBody;
pub use crate::body::Received;
use crate::cache::{UpstreamCredentials, credentials};
use crate::credentials::Rotate;
use crate::error::ApiError;
use crate::fields::Field;
use crate::members::bodies::{self, Accept, ChangeMe, CreateMember, Invite, SetPermissions};
use crate::operations::RotationRequest;
use crate::operations::access_keys::{AccessKeyRequest, ExpiryChange};
use crate::operations::key_owners::KeyOwnerRequest;
use crate::operations::loaded;
use crate::operations::members::{Acceptance, MemberRequest, OwnChange};
use crate::operations::organization::OrganizationChange;
use crate::operations::policies::{ExceptionRequest, RuleChangeRequest, RuleRequest};
use crate::operations::repositories::RepositoryChange;
use crate::operations::retention::{PolicyRequest, Rule};
use crate::operations::sso::SettingsRequest;
use crate::operations::tokens::TokenRequest;
use crate::operations::webhooks::{WantedWebhook, WebhookRequest};
use crate::organization::ChangeOrganization;
use crate::policies::bodies::{ChangeRule, CreateException, CreateRule};
use crate::retention::bodies::{ChangePolicy, CreatePolicy};
use crate::sso::settings::SetSso;
use crate::subscribers::bodies::{
    ChangeSubscriber, ChangeSubscriberGroup, CreateSubscriber, CreateSubscriberGroup, KeyOwnerBody,
};
use crate::tokens::CreateToken;
use crate::webhooks::bodies::{ChangeWebhook, CreateWebhook};

/// The body in its shape: 400 `invalid_request` where a form was written by hand and has another.
fn shape<T: DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_json::from_value(body)
        .map_err(|error| ApiError::invalid(&format!("The form is not right: {error}.")))
}

/// Reads a form's bytes: the limits of a call's body hold, for whoever is `signed` in and for a stranger.
pub async fn receive(
    app: &App,
    address: std::net::IpAddr,
    headers: &HeaderMap,
    body: axum::body::Body,
    signed: bool,
) -> Result<Received, ApiError> {
    CallBody::new(headers, body).form(&app.live.limits.get(), signed, app.bodies.share(address)).await
}

/// A token that is wanted. `now` in ms since 1970.
pub fn token(app: &App, body: Value, now: i64) -> Result<TokenRequest, ApiError> {
    let request = shape::<CreateToken>(body)?.request(&app.runtime.own_tokens(), now);
    request.map_err(|refused| loaded::unless_starting(app, refused))
}

/// How a token or an access key is to be rotated. `now` in ms since 1970.
pub fn rotation(body: Value, now: i64) -> Result<RotationRequest, ApiError> {
    shape::<Rotate>(body)?.request(now)
}

/// A repository that is wanted.
pub fn repository(app: &App, body: Value) -> Result<NewRepository, ApiError> {
    let current = app.runtime.current();
    let formats: Vec<&Description> = current.plugins().iter().map(|plugin| plugin.description()).collect();
    crate::repositories::from_json(&formats, body).map_err(|refused| loaded::unless_starting(app, refused))
}

/// A policy of retention that is wanted: its name and its rule.
pub fn retention_policy(body: Value) -> Result<(String, Rule), ApiError> {
    shape::<CreatePolicy>(body)?.request()
}

/// What of a policy of retention is to change.
pub fn retention_change(body: Value) -> Result<PolicyRequest, ApiError> {
    shape::<ChangePolicy>(body)?.request()
}

/// A policy over versions that is wanted.
pub fn policy(body: Value) -> Result<RuleRequest, ApiError> {
    shape::<CreateRule>(body)?.request()
}

/// What of a policy over versions is to change.
pub fn policy_change(body: Value) -> Result<RuleChangeRequest, ApiError> {
    shape::<ChangeRule>(body)?.request()
}

/// An exception from a policy over versions that is wanted, at `now` in ms since 1970.
pub fn policy_exception(body: Value, now: i64) -> Result<ExceptionRequest, ApiError> {
    shape::<CreateException>(body)?.request(now)
}

/// A webhook that is wanted.
pub fn webhook(body: Value) -> Result<WantedWebhook, ApiError> {
    shape::<CreateWebhook>(body)?.request()
}

/// What of a webhook is to change.
pub fn webhook_change(body: Value) -> Result<WebhookRequest, ApiError> {
    shape::<ChangeWebhook>(body)?.request()
}

/// What of a repository is to change, each absent where it stays.
pub fn repository_change(settings: Field, members: Field, upstream: Field) -> RepositoryChange {
    RepositoryChange { settings, members, upstream }
}

/// Credentials for a proxy's upstream; none takes them away.
pub fn upstream_credentials(body: Value) -> Result<Option<Credentials>, ApiError> {
    credentials(&shape::<UpstreamCredentials>(body)?)
}

/// A subscriber or a group that is wanted, or what of one is to change.
pub fn key_owner(kind: KeyOwnerKind, new: bool, body: Value) -> Result<KeyOwnerRequest, ApiError> {
    match (kind, new) {
        (KeyOwnerKind::Subscriber, true) => shape::<CreateSubscriber>(body)?.request(),
        (KeyOwnerKind::Subscriber, false) => shape::<ChangeSubscriber>(body)?.request(),
        (KeyOwnerKind::Group, true) => shape::<CreateSubscriberGroup>(body)?.request(),
        (KeyOwnerKind::Group, false) => shape::<ChangeSubscriberGroup>(body)?.request(),
    }
}

/// An access key that is wanted. `now` in ms since 1970.
pub fn access_key(body: Value, now: i64) -> Result<AccessKeyRequest, ApiError> {
    shape::<CreateAccessKey>(body)?.request(now)
}

/// Another expiry of an access key. `now` in ms since 1970.
pub fn access_key_change(body: Value, now: i64) -> Result<ExpiryChange, ApiError> {
    shape::<ChangeAccessKey>(body)?.change(now)
}

/// A member who is wanted.
pub fn member(body: Value) -> Result<MemberRequest, ApiError> {
    shape::<CreateMember>(body)?.request()
}

/// Who is invited, by e-mail address, and to what.
pub fn invitation(body: Value) -> Result<(String, Permissions), ApiError> {
    let Invite { email, permissions } = shape(body)?;
    Ok((bodies::email(&email)?, permissions.once_each()))
}

/// All that a member may do from now on.
pub fn permissions(body: Value) -> Result<Permissions, ApiError> {
    Ok(shape::<SetPermissions>(body)?.permissions.once_each())
}

/// Who accepts an invitation.
pub fn acceptance(body: Value) -> Result<Acceptance, ApiError> {
    shape::<Accept>(body)?.acceptance()
}

/// A new password.
pub fn password(text: String) -> Result<Secret, ApiError> {
    bodies::password(text)
}

/// What members change of themselves.
pub fn own_change(body: Value) -> Result<OwnChange, ApiError> {
    shape::<ChangeMe>(body)?.change()
}

/// What of the organization is to change.
pub fn organization_change(body: Value) -> Result<OrganizationChange, ApiError> {
    shape::<ChangeOrganization>(body)?.change()
}

/// Sign-in settings.
pub fn sso(app: &App, body: Value) -> Result<SettingsRequest, ApiError> {
    shape::<SetSso>(body)?.request(app)
}

/// An event as the API shows it, for an export.
pub fn event(row: AuditRow) -> Result<Value, ApiError> {
    serde_json::to_value(EventView::from(row)).map_err(|error| ApiError::Internal(error.into()))
}
