//! Sign-ins that a package client starts and a person finishes in the browser. The portal serves
//! the page for that.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::Scope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error_response::ErrorBody;
use crate::fields::{self, Field, given};
use crate::operations::confirmations::Action;
use crate::operations::logins;
use crate::scope::Family;

/// Default lifetime of the token: 90 days in ms.
const TOKEN_MS: i64 = 90 * 24 * 60 * 60 * 1000;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(finish)]
}

/// The access that a sign-in grants.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginView {
    /// Id of the repository.
    repository: String,
    /// The repository's name.
    name: String,
    /// `read`, and `write` if the caller may publish and delete.
    scope: Vec<String>,
    /// Default expiry of the token, in ms since 1970.
    expires_at: i64,
}

/// Completion of a sign-in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finish {
    /// Expiry in ms since 1970, or null for no expiry; 90 days from now by default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// Token from POST /v1/confirmations for `finish_npm_login`. The header X-Confirmation-Token
    /// may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// A finished sign-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct FinishedView {
    /// Id of the token. Only the client that started the sign-in receives its secret.
    id: String,
    expires_at: Option<i64>,
}

/// Returns the access that a sign-in grants to the caller's account.
#[utoipa::path(get, path = "/v1/npm-logins/{id}", operation_id = "show_npm_login",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("id" = String, Path)),
    responses((status = 200, body = LoginView)))]
async fn show(call: Call) -> HandlerResult {
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

/// Completes a sign-in: creates a token for its repository, which the client that started the
/// sign-in fetches.
#[utoipa::path(post, path = "/v1/npm-logins/{id}/finish", operation_id = "finish_npm_login",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens)),
        ("x-confirmation" = json!(Action::FinishNpmLogin))),
    params(("id" = String, Path)),
    request_body = Finish,
    responses((status = 200, body = FinishedView), (status = 409, body = ErrorBody)))]
async fn finish(mut call: Call) -> HandlerResult {
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
