//! Sign-ins that a client starts, and the caller's tokens. Plugins never see secrets, only
//! placeholders.

use std::collections::VecDeque;

use packhouse_runtime::{Login, LoginState, RepositoryView, ServiceError, TokenView};
use packhouse_store::{AuditEvent, LoginBegun, LoginRow, NewLogin, TokenId, TokenRow};
use sha2::{Digest as _, Sha256};

use super::CallServices;
use packhouse_app::login_links;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity as identity;
use packhouse_identity::access::{CredentialState, ResolvedCredential};

/// Maximum number of pending sign-ins from one address in an organization. This limit exists
/// because anyone can begin a sign-in without a credential.
const MAX_OPEN_FROM_ADDRESS: u32 = 20;
/// Maximum number of pending sign-ins in an organization. Beyond it, the oldest are dropped.
const MAX_OPEN: u32 = 2_000;
/// Seconds that a client should wait between polls.
const POLL_INTERVAL_S: u32 = 1;
/// Maximum number of tokens in a list.
const MAX_LISTED: u32 = 200;

/// Begins a sign-in that a user completes on a page of the API host.
pub(super) async fn begin_login(
    services: &CallServices,
    target: &RepositoryView,
) -> Result<Login, ServiceError> {
    let poll = identity::mint_poll();
    let page = login_links::page_of(&poll);
    let (now, address) = (services.app.store.now_ms(), ClientNetwork::of(services.caller.peer).to_string());
    // If the caller must not learn whether the repository exists, the token gets no repository.
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
    match services.app.store.begin_login(login, MAX_OPEN_FROM_ADDRESS, MAX_OPEN).await? {
        LoginBegun::Begun => {
            Ok(Login { url: login_links::url(&services.app, &page, services.caller.site.as_ref()), id: poll })
        }
        LoginBegun::TooMany { until } => {
            let wait_ms = u64::try_from(until - now).unwrap_or_default();
            Err(ServiceError::TooMany { retry_after_s: wait_ms.div_ceil(1000).max(1) })
        }
    }
}

/// Returns the state of a sign-in. Hands out the token only once.
pub(super) async fn finish_login(services: &CallServices, id: &str) -> Result<LoginState, ServiceError> {
    let secret_hash = sha256(id);
    let here = services.caller.repository.as_deref();
    let found = services.app.store.login_by_poll_secret(&secret_hash).await?;
    let is_here = |login: &LoginRow| {
        login.organization == services.caller.organization && Some(login.name.as_str()) == here
    };
    let Some(login) = found.filter(|login| is_here(login) && login.expires_at > services.app.store.now_ms())
    else {
        return Ok(LoginState::Gone);
    };
    match (login.token, login.sealed) {
        (None, _) => Ok(LoginState::Waiting(POLL_INTERVAL_S)),
        (Some(_), None) => Ok(LoginState::Gone),
        (Some(_), Some(sealed)) => {
            if !services.app.store.take_login(&secret_hash, &sealed).await? {
                return Ok(LoginState::Gone);
            }
            let opened = services.app.sealer.open(&login_links::purpose(&login_links::page_of(id)), &sealed);
            let secret = opened.map_err(|error| ServiceError::Other(error.to_string()))?;
            Ok(LoginState::Granted(services.placeholder(secret)))
        }
    }
}

/// Returns the caller's own valid tokens, newest first.
pub(super) async fn tokens(services: &CallServices) -> Result<Vec<TokenView>, ServiceError> {
    let Some(member) = services.member() else { return Ok(Vec::new()) };
    let store = &services.app.store;
    let now = store.now_ms();
    let works =
        |row: &TokenRow| CredentialState::at(now, row.revoked_at, row.expires_at, row.ends_at).works();
    let (mut newest, mut after) = (VecDeque::new(), None);
    loop {
        let page =
            store.list_tokens(services.caller.organization, Some(member.id), None, after, MAX_LISTED).await?;
        let last = page.len() < MAX_LISTED as usize;
        after = page.last().map(|row| row.id);
        // Pages begin with the oldest token, and a member may have very many tokens.
        newest.extend(page.into_iter().filter(works));
        newest.drain(..newest.len().saturating_sub(MAX_LISTED as usize));
        if last {
            return Ok(newest.iter().rev().map(view).collect());
        }
    }
}

/// Revokes a token. A credential may always revoke itself. An account or a token with write access
/// may also revoke other tokens of the same member. Returns false if the caller may not revoke the
/// token.
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
        // This prefix is the only part of the token that the server stores.
        hint: identity::TOKEN_PREFIX.to_owned(),
        scope: scope.iter().filter(|(held, _)| *held).map(|(_, name)| (*name).to_owned()).collect(),
        created: u64::try_from(row.created_at).unwrap_or_default(),
        expires: row.expires_at.and_then(|at| u64::try_from(at).ok()),
    }
}

/// Returns the hash under which the secret of a sign-in is stored.
fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
