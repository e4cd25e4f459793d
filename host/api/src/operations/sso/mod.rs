//! Sign-in by a provider: an organization's settings, this server as the provider's client, and the confirmation of an action by a new
//! sign-in.

mod finish;
mod link;
mod settings;
mod start;

use packhouse_app::sso::{Exchange, Refused, Settings, Ticket};
use packhouse_store::{MemberRow, OrganizationId};
use packhouse_wire::catalogue;

use super::Origin;
use crate::error::ApiError;
pub use finish::{Finished, Outcome, ProviderAnswer, finish};
pub use link::{link, pending};
pub use settings::{SettingsRequest, remove, set, show};
pub use start::{Beginning, Begun, start};

/// How long a ticket is good: 5 minutes in ms.
const TICKET_MS: i64 = 5 * 60 * 1000;

/// An organization's settings as they are now: read for each step, never kept. 404 `not_found` where it has none.
pub async fn current(origin: &Origin, organization: OrganizationId) -> Result<Settings, ApiError> {
    let json = origin.app.store.sso_settings(organization).await?;
    let settings = json.as_deref().and_then(Settings::read);
    settings.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// This server as the provider's client. Fails where the client's secret cannot be opened.
pub fn exchange<'a>(
    origin: &'a Origin,
    organization: OrganizationId,
    settings: &'a Settings,
) -> Result<Exchange<'a>, ApiError> {
    let open = |sealed: &String| origin.app.sealer.open(&Settings::purpose(organization), sealed);
    let secret = settings.sealed_secret.as_ref().map(open).transpose();
    Ok(Exchange {
        providers: &origin.app.providers,
        settings,
        secret: secret.map_err(|error| ApiError::Internal(error.into()))?,
        callback: callback_url(origin),
        now: origin.now,
    })
}

/// Where the provider sends a browser back to.
pub fn callback_url(origin: &Origin) -> String {
    format!("{}/v1/sso/callback", origin.api_url())
}

/// Where a member's browser signs in anew.
#[derive(Debug)]
pub struct SignInAddress {
    /// To be opened there.
    pub url: String,
    /// Until when, in ms since 1970.
    pub expires_at: i64,
}

/// The address at which a member's browser confirms this action by a new sign-in. 404 `not_found` where the organization has no
/// provider. `page` is the path of this host's page that asks.
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
                tracing::warn!(%error, "a sign-in provider cannot be used");
                ApiError::with(&catalogue::SSO_PROVIDER_FAILED, &error.to_string())
            }
        }
    }
}
