//! Forms of the portal, checked like the body of the corresponding call: the same structures,
//! order, codes and messages. A page builds a JSON body from its fields, converts it here, and
//! calls the operation with the result.

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
use crate::api_tokens::CreateApiToken;
use crate::audit::EventView;
use crate::body::CallBody;
pub use crate::body::FormBody;
use crate::cache::{UpstreamCredentials, credentials};
use crate::credentials::Rotate;
use crate::error::ApiError;
use crate::fields::Field;
use crate::members::bodies::{self, Accept, ChangeMe, CreateMember, Invite, SetPermissions};
use crate::operations::RotationRequest;
use crate::operations::access_keys::{AccessKeyRequest, ExpiryChange};
use crate::operations::api_tokens::ApiTokenRequest;
use crate::operations::key_owners::KeyOwnerRequest;
use crate::operations::loaded;
use crate::operations::members::{Acceptance, MemberRequest, OwnChange};
use crate::operations::organization::OrganizationChange;
use crate::operations::policies::{ExceptionRequest, RuleChangeRequest, RuleRequest};
use crate::operations::repositories::RepositoryChange;
use crate::operations::retention::{PolicyRequest, Rule};
use crate::operations::service_accounts::{ServiceAccountChange, ServiceAccountRequest};
use crate::operations::sso::SettingsRequest;
use crate::operations::teams::{TeamChangeRequest, TeamRequest};
use crate::operations::tokens::TokenRequest;
use crate::operations::webhooks::{NewWebhookRequest, WebhookRequest};
use crate::organization::ChangeOrganization;
use crate::policies::bodies::{ChangeRule, CreateException, CreateRule};
use crate::retention::bodies::{ChangePolicy, CreatePolicy};
use crate::service_accounts::{ChangeServiceAccount, CreateServiceAccount};
use crate::sso::settings::SetSso;
use crate::subscribers::bodies::{
    ChangeSubscriber, ChangeSubscriberGroup, CreateSubscriber, CreateSubscriberGroup, KeyOwnerBody,
};
use crate::teams::bodies::{ChangeTeam, CreateTeam};
use crate::tokens::CreateToken;
use crate::webhooks::bodies::{ChangeWebhook, CreateWebhook};

/// Deserializes a body. 400 `invalid_request` if a form was written by hand and does not fit.
fn shape<T: DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_json::from_value(body).map_err(|error| ApiError::invalid(&format!("The form is invalid: {error}.")))
}

/// Reads the bytes of a form. The limits of a call's body apply; they depend on `signed`.
pub async fn receive(
    app: &App,
    address: std::net::IpAddr,
    headers: &HeaderMap,
    body: axum::body::Body,
    signed: bool,
) -> Result<FormBody, ApiError> {
    CallBody::new(headers, body).form(&app.live.limits.get(), signed, app.bodies.share(address)).await
}

/// Reads a new token. `now` is Unix time in ms.
pub fn token(app: &App, body: Value, now: i64) -> Result<TokenRequest, ApiError> {
    let request = shape::<CreateToken>(body)?.request(&app.runtime.own_tokens(), now);
    request.map_err(|refused| loaded::unless_starting(app, refused))
}

/// Reads a new API token. `now` is Unix time in ms.
pub fn api_token(body: Value, now: i64) -> Result<ApiTokenRequest, ApiError> {
    shape::<CreateApiToken>(body)?.request(now)
}

/// Reads a new service account.
pub fn service_account(body: Value) -> Result<ServiceAccountRequest, ApiError> {
    shape::<CreateServiceAccount>(body)?.request()
}

/// Reads the changes to a service account.
pub fn service_account_change(body: Value) -> Result<ServiceAccountChange, ApiError> {
    shape::<ChangeServiceAccount>(body)?.change()
}

/// Reads the rotation of a token, an API token or an access key. `now` is Unix time in ms.
pub fn rotation(body: Value, now: i64) -> Result<RotationRequest, ApiError> {
    shape::<Rotate>(body)?.request(now)
}

pub fn repository(app: &App, body: Value) -> Result<NewRepository, ApiError> {
    let current = app.runtime.current();
    let formats: Vec<&Description> = current.plugins().iter().map(|plugin| plugin.description()).collect();
    crate::repositories::from_json(&formats, body).map_err(|refused| loaded::unless_starting(app, refused))
}

/// Reads the name and the rule of a new retention policy.
pub fn retention_policy(body: Value) -> Result<(String, Rule), ApiError> {
    shape::<CreatePolicy>(body)?.request()
}

/// Reads the changes to a retention policy.
pub fn retention_change(body: Value) -> Result<PolicyRequest, ApiError> {
    shape::<ChangePolicy>(body)?.request()
}

/// Reads a new policy for versions.
pub fn policy(body: Value) -> Result<RuleRequest, ApiError> {
    shape::<CreateRule>(body)?.request()
}

/// Reads the changes to a policy for versions.
pub fn policy_change(body: Value) -> Result<RuleChangeRequest, ApiError> {
    shape::<ChangeRule>(body)?.request()
}

/// Reads a new exception from a policy. `now` is Unix time in ms.
pub fn policy_exception(body: Value, now: i64) -> Result<ExceptionRequest, ApiError> {
    shape::<CreateException>(body)?.request(now)
}

pub fn webhook(body: Value) -> Result<NewWebhookRequest, ApiError> {
    shape::<CreateWebhook>(body)?.request()
}

/// Reads the changes to a webhook.
pub fn webhook_change(body: Value) -> Result<WebhookRequest, ApiError> {
    shape::<ChangeWebhook>(body)?.request()
}

/// Changes to a repository; absent fields stay as they are.
pub fn repository_change(settings: Field, members: Field, upstream: Field) -> RepositoryChange {
    RepositoryChange { settings, members, upstream }
}

/// Reads the credentials for a proxy's upstream; `None` removes them.
pub fn upstream_credentials(body: Value) -> Result<Option<Credentials>, ApiError> {
    credentials(&shape::<UpstreamCredentials>(body)?)
}

/// Reads a new subscriber or group, or the changes to one.
pub fn key_owner(kind: KeyOwnerKind, new: bool, body: Value) -> Result<KeyOwnerRequest, ApiError> {
    match (kind, new) {
        (KeyOwnerKind::Subscriber, true) => shape::<CreateSubscriber>(body)?.request(),
        (KeyOwnerKind::Subscriber, false) => shape::<ChangeSubscriber>(body)?.request(),
        (KeyOwnerKind::Group, true) => shape::<CreateSubscriberGroup>(body)?.request(),
        (KeyOwnerKind::Group, false) => shape::<ChangeSubscriberGroup>(body)?.request(),
    }
}

/// Reads a new access key. `now` is Unix time in ms.
pub fn access_key(body: Value, now: i64) -> Result<AccessKeyRequest, ApiError> {
    shape::<CreateAccessKey>(body)?.request(now)
}

/// Reads the new expiry of an access key. `now` is Unix time in ms.
pub fn access_key_change(body: Value, now: i64) -> Result<ExpiryChange, ApiError> {
    shape::<ChangeAccessKey>(body)?.change(now)
}

pub fn member(body: Value) -> Result<MemberRequest, ApiError> {
    shape::<CreateMember>(body)?.request()
}

/// Reads the e-mail address and the permissions of an invitation.
pub fn invitation(body: Value) -> Result<(String, Permissions), ApiError> {
    let Invite { email, permissions } = shape(body)?;
    Ok((bodies::email(&email)?, bodies::permissions(permissions)?))
}

/// Reads the complete new permissions of a member.
pub fn permissions(body: Value) -> Result<Permissions, ApiError> {
    bodies::permissions(shape::<SetPermissions>(body)?.permissions)
}

/// Reads the body that creates a team.
pub fn team(body: Value) -> Result<TeamRequest, ApiError> {
    shape::<CreateTeam>(body)?.request()
}

/// Reads the changes to a team.
pub fn team_change(body: Value) -> Result<TeamChangeRequest, ApiError> {
    shape::<ChangeTeam>(body)?.request()
}

/// Reads the account of a person who accepts an invitation.
pub fn acceptance(body: Value) -> Result<Acceptance, ApiError> {
    shape::<Accept>(body)?.acceptance()
}

pub fn password(text: String) -> Result<Secret, ApiError> {
    bodies::password(text)
}

/// Reads a member's changes to their own account.
pub fn own_change(body: Value) -> Result<OwnChange, ApiError> {
    shape::<ChangeMe>(body)?.change()
}

/// Reads the changes to the organization.
pub fn organization_change(body: Value) -> Result<OrganizationChange, ApiError> {
    shape::<ChangeOrganization>(body)?.change()
}

pub fn sso(app: &App, body: Value) -> Result<SettingsRequest, ApiError> {
    shape::<SetSso>(body)?.request(app)
}

/// View of an event, for an export.
pub fn event(row: AuditRow) -> Result<Value, ApiError> {
    serde_json::to_value(EventView::from(row)).map_err(|error| ApiError::Internal(error.into()))
}
