//! `GET, PUT, DELETE /v1/sso`: an organization's sign-in settings. The client's secret goes in and never comes out.

use crate::endpoint::Right::Holds;
use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::OrganizationId;
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use packhouse_app::sso::Settings;
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Secret};
use packhouse_wire::catalogue;

/// Domains that may be listed.
const DOMAINS: usize = 100;
/// The longest text of a field.
const LONGEST: usize = 2048;

/// Sign-in settings to be set.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetSso {
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
        let callback_url = super::address_of_callback(call.origin());
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
    call.actor()?.needs(ManageOwnerAccount)?;
    let settings = super::current(call.origin(), call.actor()?.organization()).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Sets how members of the organization sign in. The provider is not asked before somebody signs in.
#[utoipa::path(put, path = "/v1/sso", operation_id = "set_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    request_body = SetSso,
    responses((status = 200, body = SsoView)))]
pub(super) async fn change(mut call: Call) -> Answer {
    let wanted: SetSso = call.body()?;
    call.only(&[])?;
    let issuer = issuer(&call, &wanted.issuer)?;
    let client_id = text("client_id", &wanted.client_id)?;
    let client_secret = wanted.client_secret.map(|secret| text("client_secret", &secret)).transpose()?;
    let email_domains = domains(wanted.email_domains)?;
    call.actor()?.needs(ManageOwnerAccount)?;
    let permissions = wanted.permissions.map(Permissions::once_each);
    if let Some(permissions) = &permissions {
        call.actor()?.judge(call.actor()?.permissions().covers(permissions), &catalogue::ROLE_MISMATCH)?;
        crate::operations::members::repositories_exist(call.actor()?, permissions).await?;
    }
    let organization = call.actor()?.organization();
    let sealed_secret = match client_secret {
        Some(secret) => Some(seal(&call, organization, secret)?),
        None => kept(&call, organization, &issuer, &client_id).await?,
    };
    let password_sign_in = wanted.password_sign_in;
    let settings =
        Settings { issuer, client_id, sealed_secret, email_domains, permissions, password_sign_in };
    let json = serde_json::to_string(&settings).map_err(anyhow::Error::from)?;
    let event = Some(call.actor()?.event("set_sso", settings.issuer.clone()));
    call.app.store.set_sso_settings(organization, &json, event).await?;
    Ok(Json(SsoView::new(&call, settings)).into_response())
}

/// Takes the sign-in settings away: members sign in by password alone. Sessions stay.
#[utoipa::path(delete, path = "/v1/sso", operation_id = "delete_sso",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub(super) async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    call.actor()?.needs(ManageOwnerAccount)?;
    let event = Some(call.actor()?.event("delete_sso", ""));
    match call.app.store.delete_sso_settings(call.actor()?.organization(), event).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

fn wrong(sentence: &str) -> ApiError {
    ApiError::with(&catalogue::INVALID_SSO_SETTINGS, sentence)
}

/// Kept as it was written: it is compared with what the provider says, letter by letter.
fn issuer(call: &Call, written: &str) -> Result<String, ApiError> {
    let written = text("issuer", written)?;
    let url = Url::parse(&written).map_err(|_| wrong("`issuer` is the https address of a provider."))?;
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(wrong("`issuer` has no query, no fragment and no user."));
    }
    call.app.providers.check(&url).map_err(|error| wrong(&format!("`issuer`: {error}.")))?;
    Ok(written)
}

fn text(field: &str, written: &str) -> Result<String, ApiError> {
    let plain = !written.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    match !written.is_empty() && written.len() <= LONGEST && plain {
        true => Ok(written.to_owned()),
        false => Err(wrong(&format!("`{field}` has 1 to {LONGEST} characters and no space."))),
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

fn seal(call: &Call, organization: OrganizationId, secret: String) -> Result<String, ApiError> {
    let sealed = call.app.sealer.seal(&Settings::purpose(organization), &Secret::new(secret));
    sealed.map_err(|error| ApiError::Internal(error.into()))
}

/// The secret that is there, as long as it stays between the same two: nobody sends it to another address.
async fn kept(
    call: &Call,
    organization: OrganizationId,
    issuer: &str,
    client_id: &str,
) -> Result<Option<String>, ApiError> {
    let json = call.app.store.sso_settings(organization).await?;
    let settings = json.as_deref().and_then(Settings::read);
    let same = settings.filter(|known| known.issuer == issuer && known.client_id == client_id);
    Ok(same.and_then(|known| known.sealed_secret))
}
