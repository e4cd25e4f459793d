//! Sign-in through a provider: an organization's settings, this server as the provider's client,
//! and the confirmation of an action by a new sign-in.

mod finish;
mod groups;
mod link;
mod settings;
mod start;

use packhouse_app::sso::{Exchange, Refused, SsoSettings, Ticket};
use packhouse_store::{MemberRow, OrganizationId};
use packhouse_wire::catalogue;

use super::Origin;
use crate::error::ApiError;
pub use finish::{FinishedSignIn, ProviderAnswer, SsoOutcome, finish};
pub use link::{link, pending};
pub use settings::{SettingsRequest, remove, set, show};
pub use start::{SignInStart, StartedSignIn, start};

/// Lifetime of a ticket: 5 minutes in ms.
const TICKET_MS: i64 = 5 * 60 * 1000;

/// Reads an organization's present settings; they are never cached. 404 `not_found` if it has none.
pub async fn current(origin: &Origin, organization: OrganizationId) -> Result<SsoSettings, ApiError> {
    let json = origin.app.store.sso_settings(organization).await?;
    let settings = json.as_deref().and_then(SsoSettings::read);
    settings.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// This server as a client of the provider. Fails if the client secret cannot be decrypted.
pub fn exchange<'a>(
    origin: &'a Origin,
    organization: OrganizationId,
    settings: &'a SsoSettings,
) -> Result<Exchange<'a>, ApiError> {
    let open = |sealed: &String| origin.app.sealer.open(&SsoSettings::purpose(organization), sealed);
    let secret = settings.sealed_secret.as_ref().map(open).transpose();
    Ok(Exchange {
        providers: &origin.app.providers,
        settings,
        secret: secret.map_err(|error| ApiError::Internal(error.into()))?,
        callback: callback_url(origin),
        now: origin.now,
    })
}

/// Address to which the provider returns the browser.
pub fn callback_url(origin: &Origin) -> String {
    format!("{}/v1/sso/callback", origin.api_url())
}

/// Address for a new sign-in in the member's browser.
#[derive(Debug)]
pub struct SignInAddress {
    pub url: String,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

/// Returns the address at which a member's browser confirms an action by a new sign-in. `page` is
/// the path of the page of this host that requests it. 404 `not_found` if the organization has no
/// provider.
pub async fn ticket(
    origin: &Origin,
    member: &MemberRow,
    action: &str,
    page: Option<&str>,
) -> Result<SignInAddress, ApiError> {
    current(origin, member.organization).await?;
    let expires_at = origin.now + TICKET_MS;
    let ticket = Ticket {
        organization: member.organization.to_string(),
        member: member.id.to_string(),
        action: action.to_owned(),
        page: page.map(str::to_owned),
        expires_at,
    };
    let sealed = ticket.seal(&origin.app.sealer)?;
    let url = format!("{}/v1/sso/start?ticket={}", origin.api_url(), sealed.reveal());
    Ok(SignInAddress { url, expires_at })
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> ApiError {
        match refused {
            Refused::Answer(why) => ApiError::with(&catalogue::SSO_REFUSED, why),
            Refused::Provider(error) => {
                tracing::warn!(%error, "sign-in provider failed");
                ApiError::with(&catalogue::SSO_PROVIDER_FAILED, &error.to_string())
            }
        }
    }
}
