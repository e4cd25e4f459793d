//! Sign-in by a provider: `GET, PUT, DELETE /v1/sso` for its settings, `GET /v1/sso/start` and `GET /v1/sso/callback` for the
//! way there and back.

mod callback;
mod settings;
mod start;

use packhouse_store::OrganizationId;

use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::operations::Origin;
use packhouse_app::sso::{Exchange, Refused, Settings};
use packhouse_wire::catalogue;

pub(crate) use start::ticket;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<UtoipaMethodRouter> {
    vec![
        routes!(settings::show),
        routes!(settings::change),
        routes!(settings::remove),
        routes!(start::start),
        routes!(callback::callback),
    ]
}

/// The cookie of a sign-in under way.
const FLOW: &str = "packhouse_sso";

/// An organization's settings as they are now: read for each step, never kept. 404 where it has none.
async fn current(origin: &Origin, organization: OrganizationId) -> Result<Settings, ApiError> {
    let json = origin.app.store.sso_settings(organization).await?;
    let settings = json.as_deref().and_then(Settings::read);
    settings.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// This server as the provider's client.
fn exchange<'a>(
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
        callback: address_of_callback(origin),
    })
}

fn address_of_callback(origin: &Origin) -> String {
    format!("{}/v1/sso/callback", origin.app.api_url())
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
