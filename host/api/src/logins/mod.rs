//! Sign-ins that a package client has begun and a person finishes: what is offered, and the finishing itself. The page that a
//! browser opens for it is in `page`, how it looks in `look`.
//!
//! The client asks with one secret and the page is opened with another, which is made from it: who sees the page's address, in a
//! history or over a shoulder, can finish the sign-in with an account of their own, and never fetch the token.

mod look;
mod page;

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{LoginRow, NewToken, RepositoryRow, Scope, TokenRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::page::router;
use super::Answer;
use super::call::Call;
use super::error::{ApiError, ErrorBody};
use super::fields::{self, Field, given};
use super::sessions::Action;
use packhouse_app::login_links::{hash_of_page, purpose};
use packhouse_identity::access::{GENERIC, Kind, Rules};
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// How long a token waits to be fetched: a minute in ms.
const FETCH_MS: i64 = 60 * 1000;
/// How long a token lives where nothing else is said: 90 days in ms.
const TOKEN_MS: i64 = 90 * 24 * 60 * 60 * 1000;
/// What such a token is called.
const NAME: &str = "npm login";

/// What a sign-in will grant.
#[derive(Serialize, ToSchema)]
pub struct LoginView {
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
pub struct Finish {
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
pub struct FinishedView {
    /// The token's id. Its secret goes to the client that began the sign-in, and to nobody else.
    id: String,
    expires_at: Option<i64>,
}

/// Shows what a sign-in will grant to the caller's account.
#[utoipa::path(get, operation_id = "show_npm_login",
    path = "/v1/npm-logins/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = LoginView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let offer = offer(&call, call.path("id")).await?;
    let view = LoginView {
        repository: offer.repository.id.to_string(),
        name: offer.repository.name.clone(),
        scope: offer.scope_names().iter().map(|name| (*name).to_owned()).collect(),
        expires_at: call.now + TOKEN_MS,
    };
    Ok(Json(view).into_response())
}

/// Finishes a sign-in: makes a token for its repository, which the client that began it fetches.
#[utoipa::path(post, operation_id = "finish_npm_login",
    path = "/v1/npm-logins/{id}/finish", params(("id" = String, Path)), request_body = Finish, responses(
    (status = 200, body = FinishedView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn finish(mut call: Call) -> Answer {
    let wanted: Finish = call.body()?;
    call.only(&[])?;
    let expires_at = match &wanted.expires_at {
        Some(value) => fields::expiry(value, call.now)?,
        None => Some(call.now + TOKEN_MS),
    };
    let action = Action::FinishNpmLogin.name();
    call.confirm(wanted.confirmation_token.as_ref(), action, &catalogue::STEP_UP_REQUIRED).await?;
    let page = call.path("id").to_owned();
    let offer = offer(&call, &page).await?;
    let token = grant(&call, &page, &offer, expires_at).await?;
    Ok(Json(FinishedView { id: token.id.to_string(), expires_at: token.expires_at }).into_response())
}

/// A sign-in and what it grants to whoever asks.
struct Offer {
    login: LoginRow,
    repository: RepositoryRow,
    scope: Scope,
    format: String,
}

impl Offer {
    fn scope_names(&self) -> Vec<&'static str> {
        let names = [(self.scope.read, "read"), (self.scope.write, "write")];
        names.iter().filter(|(held, _)| *held).map(|(_, name)| *name).collect()
    }
}

/// What the sign-in grants to the caller: 404 where there is none such, or it is too old; 403 `repo_access_denied` where the
/// caller may not read its repository.
async fn offer(call: &Call, page: &str) -> Result<Offer, ApiError> {
    let caller = call.caller()?;
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let organization = caller.member.organization;
    let login =
        open(call, page).await?.filter(|login| login.organization == organization).ok_or_else(gone)?;
    let repository = login.repository.ok_or_else(gone)?;
    let repository = call.app.store.find_repository(organization, repository).await?.ok_or_else(gone)?;
    let rights = caller.permissions.rights(repository.id);
    call.judge(rights.read, &catalogue::REPO_ACCESS_DENIED)?;
    let kind = Kind::of(&repository.kind);
    let own = call.app.runtime.plugin(&repository.format).and_then(|plugin| {
        let rules = Rules::from(plugin.description());
        rules.token_formats.into_iter().next()
    });
    Ok(Offer {
        login,
        scope: Scope { read: true, write: rights.write() && kind == Kind::Hosted },
        format: own.filter(|_| kind != Kind::Proxy).unwrap_or_else(|| GENERIC.to_owned()),
        repository,
    })
}

/// The sign-in of a page, unless it has expired.
async fn open(call: &Call, page: &str) -> Result<Option<LoginRow>, ApiError> {
    let login = call.app.store.login_of_page(&hash_of_page(page)).await?;
    Ok(login.filter(|login| login.expires_at > call.now))
}

/// Makes the token. 409 `already_finished` where there is one.
async fn grant(
    call: &Call,
    page: &str,
    offer: &Offer,
    expires_at: Option<i64>,
) -> Result<TokenRow, ApiError> {
    let finished = || ApiError::from(&catalogue::ALREADY_FINISHED);
    if offer.login.token.is_some() {
        return Err(finished());
    }
    let member = &call.caller()?.member;
    let Minted { secret, sha256: secret_sha256 } = identity::mint();
    let sealed =
        call.app.sealer.seal(&purpose(page), &secret).map_err(|error| ApiError::Internal(error.into()))?;
    let token = NewToken {
        secret_sha256,
        name: NAME.to_owned(),
        scope: offer.scope,
        format: offer.format.clone(),
        owner: Some(member.id),
        created_by: member.email.clone(),
        backing: None,
        backing_repository: None,
        repositories: vec![offer.repository.id],
        expires_at,
    };
    let event = call.event(Action::FinishNpmLogin.name(), offer.repository.name.clone())?;
    let until = offer.login.expires_at.max(call.now + FETCH_MS);
    let page = hash_of_page(page);
    let made = call.app.store.finish_login(&page, member.organization, token, &sealed, until, event);
    made.await?.ok_or_else(finished)
}
