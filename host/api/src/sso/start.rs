//! `GET /v1/sso/start`: sends a browser to the provider.

use axum::response::IntoResponse;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use packhouse_app::sso::{Aim, FLOW_MS, Flow, Ticket, is_own_path, random};
use packhouse_store::OrganizationId;
use packhouse_wire::catalogue;

use super::FLOW;
use crate::call::Call;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::sso;
use crate::{Answer, portal};

/// Begins a sign-in by the organization's provider: sends the browser there, and binds what comes back to this browser.
/// `organization` is its name or id, needed where there are several; `return_to` the path of this host where the browser goes on;
/// `ticket` that of POST /v1/confirmations.
#[utoipa::path(get, path = "/v1/sso/start", operation_id = "start_sso_sign_in",
    extensions(("x-right" = json!(Anyone))),
    params(("organization" = Option<String>, Query),
        ("return_to" = Option<String>, Query),
        ("ticket" = Option<String>, Query)),
    responses((status = 303, description = "To the provider"),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn start(call: Call) -> Answer {
    call.only(&["organization", "return_to", "ticket"])?;
    let return_to = call.query("return_to").map(str::to_owned);
    if return_to.as_deref().is_some_and(|path| !is_own_path(path)) {
        return Err(ApiError::invalid("`return_to` is a path of this host, as in /."));
    }
    let (organization, aim, return_to) = match call.query("ticket") {
        Some(ticket) => aim(&call, ticket, return_to)?,
        None => (organization(&call).await?, Aim::Session, return_to),
    };
    let settings = sso::current(call.origin(), organization).await?;
    let flow = Flow {
        organization: organization.to_string(),
        issuer: settings.issuer.clone(),
        state: random(),
        nonce: random(),
        verifier: random(),
        return_to,
        aim,
        began_at: call.now,
    };
    let address = sso::exchange(call.origin(), organization, &settings)?.address(&flow).await?;
    let sealed = flow.seal(&call.app.sealer)?;
    let cookie = portal::set(&call.app, FLOW, sealed.reveal(), FLOW_MS / 1000)?;
    let mut location = HeaderValue::try_from(address.as_str()).map_err(anyhow::Error::from)?;
    location.set_sensitive(true);
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, location)]).into_response())
}

/// What a ticket is for, and where the browser goes on: to the page that asked for the ticket, where one did.
fn aim(
    call: &Call,
    ticket: &str,
    return_to: Option<String>,
) -> Result<(OrganizationId, Aim, Option<String>), ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let Ticket { organization, member, action, page, .. } =
        Ticket::open(&call.app.sealer, ticket, call.now).ok_or_else(gone)?;
    let organization = organization.parse().map_err(|_| gone())?;
    let aim = Aim::Confirmation { member, action, page: page.is_some() };
    Ok((organization, aim, page.or(return_to)))
}

/// The organization that is named, or the only one.
async fn organization(call: &Call) -> Result<OrganizationId, ApiError> {
    let all = call.app.store.organizations().await?;
    match (call.query("organization"), all.as_slice()) {
        (None, [only]) => Ok(only.id),
        (None, _) => Err(ApiError::invalid("There are several organizations; name one in `organization`.")),
        (Some(named), all) => {
            let found = all.iter().find(|row| row.name == named || row.id.to_string() == named);
            found.map(|row| row.id).ok_or(ApiError::from(&catalogue::NOT_FOUND))
        }
    }
}
