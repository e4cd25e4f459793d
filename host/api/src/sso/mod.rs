//! Sign-in by a provider: `GET, PUT, DELETE /v1/sso` for its settings, `GET /v1/sso/start` and `GET /v1/sso/callback` for the
//! way there and back.

mod callback;
mod settings;
mod start;

use packhouse_store::OrganizationId;

use super::call::Call;
use super::error::ApiError;
use packhouse_app::sso::{Exchange, Refused, Settings};
use packhouse_wire::catalogue;

pub(crate) use callback::{__path_callback, callback};
pub(crate) use settings::{__path_change, __path_remove, __path_show, change, remove, show};
pub(crate) use start::{__path_start, start, ticket};

/// The cookie of a sign-in under way.
const FLOW: &str = "packhouse_sso";

/// An organization's settings as they are now: read for each step, never kept. 404 where it has none.
async fn current(call: &Call, organization: OrganizationId) -> Result<Settings, ApiError> {
    let json = call.app.store.sso_settings(organization).await?;
    let settings = json.as_deref().and_then(Settings::read);
    settings.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// This server as the provider's client.
fn exchange<'a>(
    call: &'a Call,
    organization: OrganizationId,
    settings: &'a Settings,
) -> Result<Exchange<'a>, ApiError> {
    let open = |sealed: &String| call.app.sealer.open(&Settings::purpose(organization), sealed);
    let secret = settings.sealed_secret.as_ref().map(open).transpose();
    Ok(Exchange {
        providers: &call.app.providers,
        settings,
        secret: secret.map_err(|error| ApiError::Internal(error.into()))?,
        callback: address_of_callback(call),
    })
}

fn address_of_callback(call: &Call) -> String {
    format!("{}/v1/sso/callback", call.app.api_url())
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
