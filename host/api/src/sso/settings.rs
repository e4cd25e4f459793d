//! `GET, PUT, DELETE /v1/sso`: sign-in settings of an organization. The client secret can be set
//! and is never returned.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_app::App;
use packhouse_app::sso::SsoSettings;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Secret};
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::members::bodies;
use crate::operations::confirmations::Action;
use crate::operations::sso::{self, SettingsRequest};
use crate::scope::Family;

/// Maximum number of listed domains.
const DOMAINS: usize = 100;
/// Maximum length of a field in bytes.
const LONGEST: usize = 2048;

/// New sign-in settings.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetSso {
    /// Address of the provider, exactly as in its ID tokens.
    issuer: String,
    client_id: String,
    /// Client secret. If absent or null, the secret stays while issuer and client are unchanged,
    /// and is removed otherwise.
    client_secret: Option<String>,
    /// Domains whose verified e-mail addresses may sign in; if empty, only those of members.
    #[serde(default)]
    email_domains: Vec<String>,
    /// Permissions of members who are created at their first sign-in, at most the caller's own. If
    /// absent or null, no members are created.
    permissions: Option<Permissions>,
    /// True if members may still sign in with a password; a member with manage-owner-account always
    /// may.
    #[serde(default = "yes")]
    password_sign_in: bool,
    /// Claim of the ID token that lists the groups of the person who signs in: a text or a list of
    /// texts. `groups` by default. If it is stated and the provider lists the scope `groups`, the
    /// server requests that scope.
    groups_claim: Option<String>,
    /// Confirmation token for the action `change_sign_in`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

impl SetSso {
    /// Checks the body; otherwise 400 `invalid_sso_settings`.
    pub(crate) fn request(self, app: &App) -> Result<SettingsRequest, ApiError> {
        let secret = |secret: String| text("client_secret", &secret).map(Secret::new);
        Ok(SettingsRequest {
            issuer: issuer(app, &self.issuer)?,
            client_id: text("client_id", &self.client_id)?,
            client_secret: self.client_secret.map(secret).transpose()?,
            email_domains: domains(self.email_domains)?,
            permissions: self.permissions.map(bodies::permissions).transpose()?,
            password_sign_in: self.password_sign_in,
            groups_claim: self.groups_claim.map(|claim| text("groups_claim", &claim)).transpose()?,
        })
    }
}

fn yes() -> bool {
    true
}

/// Sign-in settings.
#[derive(Serialize, ToSchema)]
pub(super) struct SsoView {
    issuer: String,
    client_id: String,
    /// True if a client secret is set; the API never returns it.
    has_client_secret: bool,
    email_domains: Vec<String>,
    permissions: Option<Permissions>,
    password_sign_in: bool,
    /// Claim of the ID token that lists the groups of the person who signs in.
    groups_claim: String,
    /// Callback address to register with the provider.
    callback_url: String,
}

impl SsoView {
    fn new(call: &Call, settings: SsoSettings) -> SsoView {
        let callback_url = sso::callback_url(call.origin());
        let groups_claim = settings.groups_claim().to_owned();
        let has_client_secret = settings.sealed_secret.is_some();
        let SsoSettings { issuer, client_id, email_domains, permissions, password_sign_in, .. } = settings;
        SsoView {
            issuer,
            client_id,
            has_client_secret,
            email_domains,
            permissions,
            password_sign_in,
            groups_claim,
            callback_url,
        }
    }
}

/// Returns the sign-in settings.
#[utoipa::path(get, path = "/v1/sso", operation_id = "show_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Organization))),
    responses((status = 200, body = SsoView), (status = 404, body = ErrorBody)))]
pub(super) async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let settings = sso::show(call.actor()?).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Sets how members of the organization sign in. The server contacts the provider only when a
/// member signs in. Another issuer, client or groups claim needs the permissions of all teams that
/// name groups, and another issuer or client those of all members without a password who have not
/// signed in yet: otherwise 403 `role_mismatch`.
#[utoipa::path(put, path = "/v1/sso", operation_id = "set_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Organization)),
        ("x-confirmation" = json!(Action::ChangeSignIn))),
    request_body = SetSso,
    responses((status = 200, body = SsoView)))]
pub(super) async fn change(mut call: Call) -> HandlerResult {
    let body: SetSso = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let settings = sso::set(call.actor()?, &confirmation, body.request(&call.app)?).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Removes the sign-in settings: members sign in with a password only. Sessions stay valid.
#[utoipa::path(delete, path = "/v1/sso", operation_id = "delete_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Organization)),
        ("x-confirmation" = json!(Action::ChangeSignIn))),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub(super) async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    sso::remove(call.actor()?, &call.confirmation(None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn wrong(sentence: &str) -> ApiError {
    ApiError::with(&catalogue::INVALID_SSO_SETTINGS, sentence)
}

/// Checks the issuer. It is stored unchanged, because it is compared literally with the provider's
/// issuer.
fn issuer(app: &App, written: &str) -> Result<String, ApiError> {
    let written = text("issuer", written)?;
    let url = Url::parse(&written).map_err(|_| wrong("`issuer` must be the https address of a provider."))?;
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(wrong("`issuer` must not have a query, a fragment or a user name."));
    }
    app.providers.check(&url).map_err(|error| wrong(&format!("`issuer`: {error}.")))?;
    Ok(written)
}

fn text(field: &str, written: &str) -> Result<String, ApiError> {
    let plain = !written.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    if !written.is_empty() && written.len() <= LONGEST && plain {
        Ok(written.to_owned())
    } else {
        Err(wrong(&format!("`{field}` must have 1 to {LONGEST} characters, without spaces.")))
    }
}

fn domains(written: Vec<String>) -> Result<Vec<String>, ApiError> {
    if written.len() > DOMAINS {
        return Err(wrong(&format!("`email_domains` may list at most {DOMAINS} domains.")));
    }
    let domains: Option<Vec<String>> = written.iter().map(|domain| identity::email_domain(domain)).collect();
    let mut domains = domains
        .ok_or_else(|| wrong("`email_domains` must be a list of domains, for example example.com."))?;
    domains.sort_unstable();
    domains.dedup();
    Ok(domains)
}
