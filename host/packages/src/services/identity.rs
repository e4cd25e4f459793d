//! A client's own sign-in, and the caller's tokens. No secret passes through a plugin: what it is handed is a placeholder.

use std::collections::VecDeque;

use packhouse_runtime::{Login, LoginState, RepositoryView, ServiceError, TokenView};
use packhouse_store::{AuditEvent, LoginBegun, LoginRow, NewLogin, TokenId, TokenRow};
use sha2::{Digest as _, Sha256};

use super::CallServices;
use packhouse_app::login_links;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity as identity;
use packhouse_identity::access::{ResolvedCredential, State};

/// Sign-ins that one address may have open in an organization. Nobody need have signed in to begin one.
const OPEN_FROM_ONE: u32 = 20;
/// Sign-ins that may be open in an organization; beyond these the oldest go.
const OPEN: u32 = 2_000;
/// How long a client waits before it asks again, in seconds.
const PAUSE_S: u32 = 1;
/// Tokens that are listed.
const LISTED: u32 = 200;

/// Begins a sign-in at the page of the API host.
pub(super) async fn begin_login(
    services: &CallServices,
    target: &RepositoryView,
) -> Result<Login, ServiceError> {
    let poll = identity::mint_poll();
    let page = login_links::page_of(&poll);
    let (now, address) = (services.app.store.now_ms(), ClientNetwork::of(services.caller.peer).to_string());
    // Where the caller may not know whether there is a repository, there is none to make a token for.
    let facts = &services.caller.principal.facts;
    let repository = facts.repository.as_ref().map(|row| row.id).filter(|id| *id == target.id);
    let login = NewLogin {
        poll_sha256: sha256(&poll),
        page_sha256: sha256(&page),
        organization: services.caller.organization,
        repository,
        name: &target.name,
        address: &address,
        created_at: now,
        expires_at: now + login_links::LIFETIME_MS,
    };
    match services.app.store.begin_login(login, OPEN_FROM_ONE, OPEN).await? {
        LoginBegun::Begun => {
            Ok(Login { url: login_links::url(&services.app, &page, services.caller.site.as_ref()), id: poll })
        }
        LoginBegun::TooMany { until } => {
            let wait_ms = u64::try_from(until - now).unwrap_or_default();
            Err(ServiceError::TooMany { retry_after_s: wait_ms.div_ceil(1000).max(1) })
        }
    }
}

/// Where a sign-in stands. The token is handed out once.
pub(super) async fn finish_login(services: &CallServices, id: &str) -> Result<LoginState, ServiceError> {
    let asked = sha256(id);
    let here = services.caller.repository.as_deref();
    let found = services.app.store.login_asked_for(&asked).await?;
    let is_here = |login: &LoginRow| {
        login.organization == services.caller.organization && Some(login.name.as_str()) == here
    };
    let Some(login) = found.filter(|login| is_here(login) && login.expires_at > services.app.store.now_ms())
    else {
        return Ok(LoginState::Gone);
    };
    match (login.token, login.sealed) {
        (None, _) => Ok(LoginState::Waiting(PAUSE_S)),
        (Some(_), None) => Ok(LoginState::Gone),
        (Some(_), Some(sealed)) => {
            if !services.app.store.take_login(&asked, &sealed).await? {
                return Ok(LoginState::Gone);
            }
            let opened = services.app.sealer.open(&login_links::purpose(&login_links::page_of(id)), &sealed);
            let secret = opened.map_err(|error| ServiceError::Other(error.to_string()))?;
            Ok(LoginState::Granted(services.placeholder(secret)))
        }
    }
}

/// The caller's own tokens that work, newest first.
pub(super) async fn tokens(services: &CallServices) -> Result<Vec<TokenView>, ServiceError> {
    let Some(member) = services.member() else { return Ok(Vec::new()) };
    let store = &services.app.store;
    let now = store.now_ms();
    let works = |row: &TokenRow| State::at(now, row.revoked_at, row.expires_at, row.ends_at).works();
    let (mut newest, mut after) = (VecDeque::new(), None);
    loop {
        let page =
            store.list_tokens(services.caller.organization, Some(member.id), None, after, LISTED).await?;
        let last = page.len() < LISTED as usize;
        after = page.last().map(|row| row.id);
        // Pages begin with the oldest, and there may be very many.
        newest.extend(page.into_iter().filter(works));
        newest.drain(..newest.len().saturating_sub(LISTED as usize));
        if last {
            return Ok(newest.iter().rev().map(view).collect());
        }
    }
}

/// Revokes a token of the caller's: the one that was shown, or with an account or a token that can write another of the same
/// member's. What can only read takes nothing else away.
pub(super) async fn revoke(services: &CallServices, id: &str) -> Result<bool, ServiceError> {
    let Ok(id) = id.parse::<i64>().map(TokenId) else { return Ok(false) };
    let store = &services.app.store;
    let own = services.caller.principal.facts.token.as_ref().is_some_and(|token| token.id == id);
    let may = match &services.caller.principal.presented {
        ResolvedCredential::Token(token, _) => own || token.write,
        ResolvedCredential::Member(_) => true,
        _ => false,
    };
    let member = services.member().map(|member| member.id);
    let found = store.find_token(services.caller.organization, id).await?;
    let mine = |token: &TokenRow| own || (token.owner.is_some() && token.owner == member);
    let Some(token) = found.filter(|token| may && mine(token)) else { return Ok(false) };
    let event = AuditEvent {
        organization: services.caller.organization,
        actor: services.caller.principal.caller.as_deref().unwrap_or_default().to_owned(),
        credential: services.caller.principal.credential.as_deref().unwrap_or_default().to_owned(),
        action: "revoke_token".to_owned(),
        subject: token.name.clone(),
        address: services.caller.peer.to_string(),
        request_id: services.caller.request_id.to_string(),
        detail: String::new(),
    };
    Ok(store.revoke_token(services.caller.organization, id, store.now_ms(), Some(event)).await?)
}

fn view(row: &TokenRow) -> TokenView {
    let scope = [(row.scope.read, "read"), (row.scope.write, "write")];
    TokenView {
        id: row.id.to_string(),
        name: row.name.clone(),
        // No more of one is kept anywhere.
        hint: identity::TOKEN_PREFIX.to_owned(),
        scope: scope.iter().filter(|(held, _)| *held).map(|(_, name)| (*name).to_owned()).collect(),
        created: u64::try_from(row.created_at).unwrap_or_default(),
        expires: row.expires_at.and_then(|at| u64::try_from(at).ok()),
    }
}

/// What a secret of a sign-in is found by.
fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
