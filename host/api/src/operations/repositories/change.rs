//! Changing a repository.

use packhouse_config::repository_settings;
use packhouse_runtime::Description;
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value};
use url::Url;

use super::{managed, may_open, rules};
use crate::error::ApiError;
use crate::fields::Field;
use crate::operations::{Actor, loaded};

/// What is to change, as it came; what is absent stays. What it may be depends on the repository's kind and format.
#[derive(Debug, Default)]
pub struct RepositoryChange {
    /// Settings that change; null takes one back to its default.
    pub settings: Field,
    /// Of a group: all its members from now on, in order.
    pub members: Field,
    /// Of a proxy: an object with `url`.
    pub upstream: Field,
}

/// Changes the repository of this id. To make it public needs read there. The credentials for a proxy's upstream are taken away where
/// another server or way is named to it: they were given for the one that was.
pub async fn change(actor: &Actor, id: &str, change: &RepositoryChange) -> Result<RepositoryRow, ApiError> {
    loop {
        let row = managed(actor, id).await?;
        let changed = apply(actor, row.clone(), change).await?;
        if changed.public && !row.public {
            may_open(actor, actor.permissions().rights(row.id))?;
        }
        let elsewhere = leads_elsewhere(&row, &changed);
        let event = actor.event("change_repository", changed.name.clone());
        if actor.app.store.update_repository(&changed, elsewhere, Some(event)).await? {
            // What its upstream did was under the settings before.
            actor.app.upstreams.forget(changed.id);
            return Ok(changed);
        }
        // Someone else changed it between reading and writing: once more, on what there is now.
    }
}

/// Whether a proxy would show its credentials to another server than before, or by another way: where the address has another scheme,
/// host or port, where requests leave by another proxy, and where others may vouch for the server.
pub fn leads_elsewhere(before: &RepositoryRow, after: &RepositoryRow) -> bool {
    let origin = |row: &RepositoryRow| {
        row.upstream.as_deref().and_then(|url| Url::parse(url).ok()).map(|url| url.origin())
    };
    let way = |row: &RepositoryRow| {
        let set: Map<String, Value> = serde_json::from_str(&row.settings).unwrap_or_default();
        repository_settings::WAYS.map(|name| set.get(name).cloned())
    };
    origin(before) != origin(after) || way(before) != way(after)
}

async fn apply(
    actor: &Actor,
    row: RepositoryRow,
    change: &RepositoryChange,
) -> Result<RepositoryRow, ApiError> {
    let plugin = loaded::plugin_of(&actor.app, &row)?;
    let changed = judge(row, change, plugin.as_ref().map(|plugin| plugin.description()))?;
    if change.members.is_some() {
        rules::members_exist(actor, &changed.members, &changed.format).await?;
    }
    Ok(changed)
}

/// The repository with these changes, as far as they alone show whether they may be: the caller looks whether members are there.
pub fn judge(
    mut row: RepositoryRow,
    change: &RepositoryChange,
    description: Option<&Description>,
) -> Result<RepositoryRow, ApiError> {
    let (changed, public) = rules::settings(&change.settings, description)?;
    row.settings = Value::Object(repository_settings::merge(&row.settings, changed)).to_string().into();
    row.public = public.unwrap_or(row.public);
    if change.upstream.is_some() {
        row.upstream = rules::upstream(&change.upstream, &row.kind)?;
    }
    if let Some(members) = rules::members(&change.members, &row.kind)? {
        row.members = members;
    }
    Ok(row)
}
