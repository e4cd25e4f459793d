//! Sign-ins that a package client has begun and a person finishes. The page that a browser opens for it is the portal's.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::Scope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error_response::ErrorBody;
use crate::fields::{self, Field, given};
use crate::operations::confirmations::Action;
use crate::operations::logins;

/// How long a token lives where nothing else is said: 90 days in ms.
const TOKEN_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(finish)]
}

/// What a sign-in will grant.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginView {
    /// The repository's id.
    repository: String,
    /// The repository's name.
    name: String,
    /// `read`, and `write` where the caller may publish and delete.
    scope: Vec<String>,
    /// When the token would expire, in ms since 1970, where nothing else is said.
    expires_at: i64,
}

/// The end of a sign-in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finish {
    /// ms since 1970, or null for never; 90 days from now where it is not stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// From POST /v1/confirmations for `finish_npm_login`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// A finished sign-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct FinishedView {
    /// The token's id. Its secret goes to the client that began the sign-in, and to nobody else.
    id: String,
    expires_at: Option<i64>,
}

/// Shows what a sign-in will grant to the caller's account.
#[utoipa::path(get, path = "/v1/npm-logins/{id}", operation_id = "show_npm_login",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path)),
    responses((status = 200, body = LoginView)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let offer = logins::offer(call.actor()?, call.path("id")).await?;
    let view = LoginView {
        repository: offer.repository.id.to_string(),
        name: offer.repository.name,
        scope: scope_names(offer.scope),
        expires_at: call.now + TOKEN_MS,
    };
    Ok(Json(view).into_response())
}

fn scope_names(scope: Scope) -> Vec<String> {
    let names = [(scope.read, "read"), (scope.write, "write")];
    names.iter().filter(|(held, _)| *held).map(|(_, name)| (*name).to_owned()).collect()
}

/// Finishes a sign-in: makes a token for its repository, which the client that began it fetches.
#[utoipa::path(post, path = "/v1/npm-logins/{id}/finish", operation_id = "finish_npm_login",
    extensions(("x-right" = json!(OfObject)), ("x-confirmation" = json!(Action::FinishNpmLogin))),
    params(("id" = String, Path)),
    request_body = Finish,
    responses((status = 200, body = FinishedView), (status = 409, body = ErrorBody)))]
async fn finish(mut call: Call) -> Answer {
    let body: Finish = call.body()?;
    call.only(&[])?;
    let expires_at = match &body.expires_at {
        Some(value) => fields::expiry(value, call.now)?,
        None => Some(call.now + TOKEN_MS),
    };
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let token = logins::finish(call.actor()?, &confirmation, call.path("id"), expires_at).await?;
    Ok(Json(FinishedView { id: token.id.to_string(), expires_at: token.expires_at }).into_response())
}
