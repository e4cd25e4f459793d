//! Cached responses of a proxy, and the credentials for its upstream. All operations need the right
//! to manage the proxy.

use packhouse_store::{CacheEntry, RepositoryRow};
use packhouse_upstream::CountsView;
use packhouse_upstream::credentials::Credentials;
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, loaded, repositories};
use crate::error::ApiError;

/// Page of cached responses, with the total.
pub struct CachePage {
    pub entries: Vec<CacheEntry>,
    /// True if another page follows.
    pub more: bool,
    /// Number of all cached responses.
    pub total: u64,
    /// Size of all cached responses, in bytes.
    pub bytes: u64,
    /// Results of requests since this server started.
    pub counts: CountsView,
}

/// Requested page of cached responses.
#[derive(Clone, Copy, Debug)]
pub struct CachePageRequest<'a> {
    pub prefix: &'a str,
    /// Number of responses to skip.
    pub offset: u32,
    pub limit: u32,
}

/// Returns cached responses of a proxy, by path. They reveal the repository's content, so this
/// needs read access to it too.
pub async fn list(actor: &Actor, id: &str, request: CachePageRequest<'_>) -> Result<CachePage, ApiError> {
    let CachePageRequest { prefix, offset, limit } = request;
    let repository = repositories::managed_proxy(actor, id).await?;
    actor.judge(repositories::may_read(actor, &repository), &catalogue::ROLE_MISMATCH)?;
    let store = &actor.app.store;
    store.write_cache_use().await?;
    let mut entries = store.cache_page(repository.id, prefix, offset, limit.saturating_add(1)).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let totals = store.cache_totals(repository.id).await?;
    let counts = actor.app.upstreams.counts(repository.id);
    Ok(CachePage { entries, more, total: totals.entries, bytes: totals.bytes, counts })
}

/// Removes the cached responses whose path begins with `prefix`; if it is empty, all of them.
pub async fn purge(actor: &Actor, id: &str, prefix: &str) -> Result<(), ApiError> {
    let repository = repositories::managed_proxy(actor, id).await?;
    actor.app.upstreams.purge(repository.id, prefix).await?;
    let event = actor.event("purge_cache", format!("{}{prefix}", repository.name));
    Ok(actor.app.store.audit(event).await?)
}

/// Sets or removes the credentials that a proxy sends to its upstream. They are stored encrypted
/// and cannot be read back. 400 `upstream_credentials_not_supported` if proxies of the format do
/// not send credentials.
pub async fn set_credentials(
    actor: &Actor,
    confirmation: &Confirmation,
    id: &str,
    credentials: Option<Credentials>,
) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::SetUpstreamCredentials).await?;
    let repository = repositories::managed_proxy(actor, id).await?;
    offered(actor, &repository)?;
    let (store, upstreams) = (&actor.app.store, &actor.app.upstreams);
    let seal = |own: Credentials| upstreams.seal(repository.id, &own);
    let sealed = credentials.map(seal).transpose().map_err(anyhow::Error::from)?;
    let event = actor.event(Action::SetUpstreamCredentials.name(), repository.name.clone());
    let set = store.set_upstream_credentials(repository.id, sealed.as_deref(), Some(event)).await?;
    upstreams.forget(repository.id);
    if set { Ok(()) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

/// Checks that proxies of the repository's format send credentials to their upstream.
fn offered(actor: &Actor, repository: &RepositoryRow) -> Result<(), ApiError> {
    let plugin = loaded::plugin_of(&actor.app, repository)?;
    if plugin.is_some_and(|plugin| !plugin.description().upstream_credentials.is_empty()) {
        return Ok(());
    }
    let sentence = "Proxies of this format do not send credentials to their upstream.";
    Err(ApiError::with(&catalogue::UPSTREAM_CREDENTIALS_NOT_SUPPORTED, sentence))
}
