//! What a proxy keeps of its upstream, and the credentials that it may show there. All of it needs manage-repositories.

use packhouse_store::{CacheEntry, RepositoryRow};
use packhouse_upstream::CountsView;
use packhouse_upstream::credentials::Credentials;
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, loaded, repositories};
use crate::error::ApiError;

/// A part of what a proxy keeps, and how much that is in all.
pub struct Kept {
    /// The page.
    pub entries: Vec<CacheEntry>,
    /// Whether another follows.
    pub more: bool,
    /// Answers in all.
    pub total: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What became of requests since this server started.
    pub counts: CountsView,
}

/// Which part of what a proxy keeps is wanted.
#[derive(Clone, Copy, Debug)]
pub struct KeptRequest<'a> {
    /// Only paths that begin so.
    pub prefix: &'a str,
    /// How many entries are left out.
    pub offset: u32,
    /// How many are shown at most.
    pub limit: u32,
}

/// What the proxy of this id keeps, by its path. It tells what the repository holds, and so needs read there as well.
pub async fn list(actor: &Actor, id: &str, request: KeptRequest<'_>) -> Result<Kept, ApiError> {
    let KeptRequest { prefix, offset, limit } = request;
    let repository = repositories::managed_proxy(actor, id).await?;
    let rights = actor.permissions().rights(repository.id);
    actor.judge(rights.read || repository.public, &catalogue::ROLE_MISMATCH)?;
    let store = &actor.app.store;
    store.write_cache_use().await?;
    let mut entries = store.cache_page(repository.id, prefix, offset, limit.saturating_add(1)).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let totals = store.cache_totals(repository.id).await?;
    let counts = actor.app.upstreams.counts(repository.id);
    Ok(Kept { entries, more, total: totals.entries, bytes: totals.bytes, counts })
}

/// Keeps no longer what begins with `prefix`: all of it where that is empty.
pub async fn purge(actor: &Actor, id: &str, prefix: &str) -> Result<(), ApiError> {
    let repository = repositories::managed_proxy(actor, id).await?;
    actor.app.upstreams.purge(repository.id, prefix).await?;
    let event = actor.event("purge_cache", format!("{}{prefix}", repository.name));
    Ok(actor.app.store.audit(event).await?)
}

/// Sets the credentials that a proxy may show its upstream, or takes them away. They are sealed, and nothing gives them out again. 400
/// `upstream_credentials_not_supported` where the format shows none.
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

/// Whether proxies of the repository's format show their upstream credentials.
fn offered(actor: &Actor, repository: &RepositoryRow) -> Result<(), ApiError> {
    let plugin = loaded::plugin_of(&actor.app, repository)?;
    if plugin.is_some_and(|plugin| !plugin.description().upstream_credentials.is_empty()) {
        return Ok(());
    }
    let sentence = "Proxies of this format show their upstream no credentials.";
    Err(ApiError::with(&catalogue::UPSTREAM_CREDENTIALS_NOT_SUPPORTED, sentence))
}
