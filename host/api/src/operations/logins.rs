//! Sign-ins that a package client starts and a person finishes in the browser.
//!
//! The client polls with one secret. The page is opened with another one, which is derived from it.
//! Somebody may see the page's address in a history or over a shoulder. They can then finish the
//! sign-in with their own account, but can never fetch the token.

use packhouse_app::login_links::{hash_of_page, purpose};
use packhouse_identity::access::{FormatRules, GENERIC, RepositoryKind};
use packhouse_identity::{self as identity, Minted};
use packhouse_store::{LoginRow, NewToken, RepositoryRow, Scope, TokenRow};
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, Origin, loaded};
use crate::error::ApiError;

/// Time that the client has to fetch the token: a minute in ms.
const FETCH_MS: i64 = 60 * 1000;
/// Name of tokens from finished sign-ins.
const NAME: &str = "npm login";

/// Sign-in with the access that it grants to the actor.
pub struct LoginOffer {
    login: LoginRow,
    pub repository: RepositoryRow,
    pub scope: Scope,
    format: String,
}

impl LoginOffer {
    /// Returns whether the sign-in is finished.
    pub fn is_finished(&self) -> bool {
        self.login.token.is_some()
    }
}

/// Returns the access that the sign-in of this page grants to the actor. 404 if it does not exist
/// or is too old; 403 `repo_access_denied` if the actor may not read its repository.
pub async fn offer(actor: &Actor, page: &str) -> Result<LoginOffer, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let organization = actor.organization();
    let login =
        open(actor, page).await?.filter(|login| login.organization == organization).ok_or_else(gone)?;
    let repository = login.repository.ok_or_else(gone)?;
    let repository = actor.app.store.find_repository(organization, repository).await?.ok_or_else(gone)?;
    let rights = actor.rights_in(&repository);
    actor.judge(rights.read, &catalogue::REPO_ACCESS_DENIED)?;
    let kind = RepositoryKind::of(&repository.kind);
    let own = loaded::plugin_of(&actor.app, &repository)?.and_then(|plugin| {
        let rules = FormatRules::from(plugin.description());
        rules.token_formats.first().cloned()
    });
    Ok(LoginOffer {
        login,
        scope: Scope { read: true, write: rights.write() && kind == RepositoryKind::Hosted },
        format: own.filter(|_| kind != RepositoryKind::Proxy).unwrap_or_else(|| GENERIC.to_owned()),
        repository,
    })
}

/// Finds the sign-in of a page, unless it has expired.
pub async fn open(origin: &Origin, page: &str) -> Result<Option<LoginRow>, ApiError> {
    let login = origin.app.store.login_by_page_secret(&hash_of_page(page)).await?;
    Ok(login.filter(|login| login.expires_at > origin.now))
}

/// Finishes a sign-in: creates a token for its repository, which the client then fetches.
/// `expires_at` is in ms since 1970, `None` for never. 409 `already_finished` if it already has a
/// token.
pub async fn finish(
    actor: &Actor,
    confirmation: &Confirmation,
    page: &str,
    expires_at: Option<i64>,
) -> Result<TokenRow, ApiError> {
    confirmation.judge(actor, Action::FinishNpmLogin).await?;
    actor.needs_person()?;
    let offer = offer(actor, page).await?;
    let finished = || ApiError::from(&catalogue::ALREADY_FINISHED);
    if offer.is_finished() {
        return Err(finished());
    }
    let Minted { secret, sha256: secret_sha256 } = identity::mint();
    let sealed =
        actor.app.sealer.seal(&purpose(page), &secret).map_err(|error| ApiError::Internal(error.into()))?;
    let member = actor.member();
    let token = NewToken {
        secret_sha256,
        name: NAME.to_owned(),
        scope: offer.scope,
        format: offer.format,
        owner: Some(member.id),
        created_by: member.email.clone(),
        backing: None,
        backing_repository: None,
        repositories: vec![offer.repository.id],
        expires_at,
        packages: None,
    };
    let event = Some(actor.event(Action::FinishNpmLogin.name(), offer.repository.name));
    let until = offer.login.expires_at.max(actor.now + FETCH_MS);
    let (store, page) = (&actor.app.store, hash_of_page(page));
    let made = store.finish_login(&page, member.organization, token, &sealed, until, event);
    made.await?.ok_or_else(finished)
}
