//! `GET, PUT, DELETE /v1/sso`: an organization's sign-in settings. The client's secret goes in and never comes out.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_app::App;
use packhouse_app::sso::Settings;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Secret};
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::sso::{self, SettingsRequest};

/// Domains that may be listed.
const DOMAINS: usize = 100;
/// The longest text of a field.
const LONGEST: usize = 2048;

/// Sign-in settings to be set.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetSso {
    /// The provider's address, exactly as its ID tokens name it.
    issuer: String,
    client_id: String,
    /// Absent or null: the secret stays as it is while issuer and client stay, and there is none otherwise.
    client_secret: Option<String>,
    /// Whose verified e-mail addresses may sign in; where there are none, those of members alone.
    #[serde(default)]
    email_domains: Vec<String>,
    /// What a member may do who is made at the first sign-in, no more than the caller's own; absent or null: nobody is made.
    permissions: Option<Permissions>,
    /// Whether members may still sign in by password; who holds manage-owner-account always may.
    #[serde(default = "yes")]
    password_sign_in: bool,
    /// Of the action `change_sign_in`; good for five minutes. The header `X-Confirmation-Token` will do as well.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

impl SetSso {
    /// What is wanted: 400 `invalid_sso_settings` for what settings cannot be.
    pub(crate) fn request(self, app: &App) -> Result<SettingsRequest, ApiError> {
        let secret = |secret: String| text("client_secret", &secret).map(Secret::new);
        Ok(SettingsRequest {
            issuer: issuer(app, &self.issuer)?,
            client_id: text("client_id", &self.client_id)?,
            client_secret: self.client_secret.map(secret).transpose()?,
            email_domains: domains(self.email_domains)?,
            permissions: self.permissions.map(Permissions::once_each),
            password_sign_in: self.password_sign_in,
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
    /// Whether there is one; it is never shown.
    has_client_secret: bool,
    email_domains: Vec<String>,
    permissions: Option<Permissions>,
    password_sign_in: bool,
    /// To be registered with the provider.
    callback_url: String,
}

impl SsoView {
    fn new(call: &Call, settings: Settings) -> SsoView {
        let Settings { issuer, client_id, sealed_secret, email_domains, permissions, password_sign_in } =
            settings;
        let callback_url = sso::callback_url(call.origin());
        let has_client_secret = sealed_secret.is_some();
        SsoView {
            issuer,
            client_id,
            has_client_secret,
            email_domains,
            permissions,
            password_sign_in,
            callback_url,
        }
    }
}

/// The sign-in settings.
#[utoipa::path(get, path = "/v1/sso", operation_id = "show_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    responses((status = 200, body = SsoView), (status = 404, body = ErrorBody)))]
pub(super) async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let settings = sso::show(call.actor()?).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Sets how members of the organization sign in. The provider is not asked before somebody signs in.
#[utoipa::path(put, path = "/v1/sso", operation_id = "set_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-confirmation" = json!(Action::ChangeSignIn))),
    request_body = SetSso,
    responses((status = 200, body = SsoView)))]
pub(super) async fn change(mut call: Call) -> Answer {
    let body: SetSso = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let settings = sso::set(call.actor()?, &confirmation, body.request(&call.app)?).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Takes the sign-in settings away: members sign in by password alone. Sessions stay.
#[utoipa::path(delete, path = "/v1/sso", operation_id = "delete_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-confirmation" = json!(Action::ChangeSignIn))),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub(super) async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    sso::remove(call.actor()?, &call.confirmation(None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn wrong(sentence: &str) -> ApiError {
    ApiError::with(&catalogue::INVALID_SSO_SETTINGS, sentence)
}

/// Kept as it was written: it is compared with what the provider says, letter by letter.
fn issuer(app: &App, written: &str) -> Result<String, ApiError> {
    let written = text("issuer", written)?;
    let url = Url::parse(&written).map_err(|_| wrong("`issuer` is the https address of a provider."))?;
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(wrong("`issuer` has no query, no fragment and no user."));
    }
    app.providers.check(&url).map_err(|error| wrong(&format!("`issuer`: {error}.")))?;
    Ok(written)
}

fn text(field: &str, written: &str) -> Result<String, ApiError> {
    let plain = !written.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    if !written.is_empty() && written.len() <= LONGEST && plain {
        Ok(written.to_owned())
    } else {
        Err(wrong(&format!("`{field}` has 1 to {LONGEST} characters and no space.")))
    }
}

fn domains(written: Vec<String>) -> Result<Vec<String>, ApiError> {
    if written.len() > DOMAINS {
        return Err(wrong(&format!("`email_domains` lists at most {DOMAINS}.")));
    }
    let domains: Option<Vec<String>> = written.iter().map(|domain| identity::email_domain(domain)).collect();
    let mut domains = domains.ok_or_else(|| wrong("`email_domains` lists domains, as in example.com."))?;
    domains.sort_unstable();
    domains.dedup();
    Ok(domains)
}
