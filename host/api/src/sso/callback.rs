//! `GET /v1/sso/callback`: what the provider sends back, judged, and what comes of it: a session in a cookie, or a confirmation.

use crate::endpoint::Right::Anyone;
use axum::Json;
use axum::response::IntoResponse;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use packhouse_store::{MemberRow, NewMember, OrganizationId, Refusal, SsoIdentity, SsoMember};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::FLOW;
use crate::Answer;
use crate::call::Call;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::{confirmations, sso};
use crate::sessions::ConfirmationView;
use crate::{operations, portal, sessions};
use packhouse_app::sso::{Aim, Flow, Refused, Settings};

/// The end of a sign-in. 201 with the session in a cookie, or the confirmation; 303 where the sign-in began with `return_to`: a
/// confirmation then stands behind `#`, where no server sees it. 401 `sso_refused` for all that is not to be believed.
#[utoipa::path(get, path = "/v1/sso/callback", operation_id = "finish_sso_sign_in",
    extensions(("x-right" = json!(Anyone))),
    params(("code" = Option<String>, Query),
        ("state" = Option<String>, Query),
        ("iss" = Option<String>, Query),
        ("error" = Option<String>, Query)),
    responses((status = 201, body = sessions::SessionView),
        (status = 303, description = "On to return_to"),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn callback(call: Call) -> Answer {
    // Providers send more than they are asked for, so nothing in the query is refused for being unknown.
    let flow = flow(&call).await?;
    let organization: OrganizationId =
        flow.organization.parse().map_err(|_| Refused::Answer("the sign-in is of no organization"))?;
    let member = match shown(&call, organization, &flow).await {
        Ok(member) => member,
        Err(error) => {
            count(&call, organization, &error);
            return Err(error);
        }
    };
    let mut answer = match &flow.aim {
        Aim::Session => session(&call, member, &flow).await?,
        Aim::Confirmation { action, page, .. } => confirmation(&call, &member, action, &flow, *page).await?,
    };
    answer.headers_mut().append(SET_COOKIE, portal::set(&call.app, FLOW, "", 0)?);
    Ok(answer)
}

/// The member whom the provider's answer shows.
async fn shown(call: &Call, organization: OrganizationId, flow: &Flow) -> Result<MemberRow, ApiError> {
    let settings = sso::current(call.origin(), organization).await?;
    if settings.issuer != flow.issuer || call.query("iss").is_some_and(|named| named != flow.issuer) {
        return Err(Refused::Answer("the answer is another provider's").into());
    }
    if call.query("error").is_some() {
        return Err(Refused::Answer("the provider says that nobody signed in").into());
    }
    let code = call.query("code").ok_or(Refused::Answer("the provider sent no code"))?;
    let (identity, name) =
        sso::exchange(call.origin(), organization, &settings)?.identity(flow, code).await?;
    member(call, organization, &settings, &flow.aim, identity, name).await
}

/// Counts a refused answer, for the audit log.
fn count(call: &Call, organization: OrganizationId, error: &ApiError) {
    let Some(code) = error.code().filter(|code| code.status == 401) else { return };
    let refusal = Refusal {
        organization: Some(organization),
        actor: String::new(),
        credential: "sso".to_owned(),
        address: call.address.to_string(),
        code: code.code.to_owned(),
    };
    call.app.store.refused(refusal, call.now);
}

/// The sign-in that this browser began, used up from now on whatever follows.
async fn flow(call: &Call) -> Result<Flow, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let cookie = portal::cookie(&call.app, call.headers(), FLOW);
    let flow = cookie.and_then(|cookie| Flow::open(&call.app.sealer, &cookie, call.now));
    let flow = flow.ok_or_else(|| refused("this browser began no sign-in, or too long ago"))?;
    let state = call.query("state").unwrap_or_default();
    if !bool::from(state.as_bytes().ct_eq(flow.state.as_bytes())) {
        return Err(refused("the answer belongs to another sign-in"));
    }
    let sha256: [u8; 32] = Sha256::digest(flow.state.as_bytes()).into();
    match call.app.store.spend_sso_state(&sha256, flow.ends_at()).await? {
        true => Ok(flow),
        false => Err(refused("the answer came before")),
    }
}

/// Whom the identity leads to. A confirmation is for a member who is here already, and for nobody else.
async fn member(
    call: &Call,
    organization: OrganizationId,
    settings: &Settings,
    aim: &Aim,
    identity: SsoIdentity,
    name: String,
) -> Result<MemberRow, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let new = match (aim, &settings.permissions) {
        (Aim::Session, Some(permissions)) if !settings.email_domains.is_empty() => Some(NewMember {
            email: identity.email.clone(),
            name: crate::fields::name(&Some(name.into())).unwrap_or_default(),
            // No password is right.
            password_hash: String::new(),
            permissions: serde_json::to_string(permissions).map_err(anyhow::Error::from)?,
        }),
        _ => None,
    };
    let email = identity.email.as_str();
    let event = call.event_of(organization, email, "sso", "create_member", email);
    match call.app.store.sso_member(organization, &identity, new, Some(event)).await? {
        SsoMember::Known(member) | SsoMember::Made(member) => match aim {
            Aim::Confirmation { member: wanted, .. } if *wanted != member.id.to_string() => {
                Err(refused("somebody else signed in"))
            }
            _ => Ok(member),
        },
        SsoMember::Nobody => Err(refused("no member has this e-mail address")),
        SsoMember::Another => {
            Err(refused("the member of this e-mail address is somebody else at the provider"))
        }
    }
}

async fn session(call: &Call, member: MemberRow, flow: &Flow) -> Answer {
    let signed_in = operations::sessions::begin(call.origin(), member).await?;
    let mut answer = sessions::in_cookie(&call.app, &signed_in)?;
    if let Some(path) = &flow.return_to {
        let cookie = answer.headers().get(SET_COOKIE).cloned();
        answer = on(path)?;
        answer.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    }
    Ok(answer)
}

async fn confirmation(call: &Call, member: &MemberRow, action: &str, flow: &Flow, page: bool) -> Answer {
    let confirmed = confirmations::confirmed(call.origin(), member, action).await?;
    match &flow.return_to {
        Some(path) if page => {
            let mut answer = on(path)?;
            answer.headers_mut().append(SET_COOKIE, portal::confirmed(&call.app, confirmed.token.reveal())?);
            Ok(answer)
        }
        Some(path) => on(&format!("{path}#confirmation_token={}", confirmed.token.reveal())),
        None => Ok((StatusCode::CREATED, Json(ConfirmationView::from(confirmed))).into_response()),
    }
}

fn on(path: &str) -> Answer {
    let mut location = HeaderValue::try_from(path).map_err(anyhow::Error::from)?;
    location.set_sensitive(true);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}
