//! Changes to the settings, members and upstream of a repository.

use packhouse_config::repository_settings;
use packhouse_runtime::Description;
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value};
use url::Url;

use super::{managed, may_make_public, rules};
use crate::error::ApiError;
use crate::fields::Field;
use crate::operations::{Actor, loaded};

/// Unchecked changes; absent fields stay as they are. The valid values depend on the repository's
/// kind and format.
#[derive(Debug, Default)]
pub struct RepositoryChange {
    /// Settings that change; null resets one to its default.
    pub settings: Field,
    /// All members of a group from now on, in order.
    pub members: Field,
    /// For a proxy: an object with `url`.
    pub upstream: Field,
}

/// Changes a repository. Making it public needs read access to it. A manager of only some
/// repositories must be able to read each repository that the manager adds to a group: 403
/// `repo_access_denied`. The upstream credentials are
/// removed if the change leads to another server or connection, because they were given for the
/// previous one.
pub async fn change(actor: &Actor, id: &str, change: &RepositoryChange) -> Result<RepositoryRow, ApiError> {
    loop {
        let row = managed(actor, id).await?;
        let changed = apply(actor, row.clone(), change).await?;
        if changed.public && !row.public {
            may_make_public(actor, actor.rights_in(&row))?;
        }
        let elsewhere = leads_elsewhere(&row, &changed);
        let event = actor.event("change_repository", changed.name.clone());
        if actor.app.store.update_repository(&changed, elsewhere, Some(event)).await? {
            // The known state of its upstream belongs to the previous settings.
            actor.app.upstreams.forget(changed.id);
            return Ok(changed);
        }
        // Another call changed it after it was read; try again with the new state.
    }
}

/// Returns whether a proxy would send its credentials to another server, or over another
/// connection: another scheme, host or port, another outgoing proxy, or another trusted certificate
/// authority.
pub fn leads_elsewhere(before: &RepositoryRow, after: &RepositoryRow) -> bool {
    let origin = |row: &RepositoryRow| {
        row.upstream.as_deref().and_then(|url| Url::parse(url).ok()).map(|url| url.origin())
    };
    let connection = |row: &RepositoryRow| {
        let set: Map<String, Value> = serde_json::from_str(&row.settings).unwrap_or_default();
        repository_settings::WAYS.map(|name| set.get(name).cloned())
    };
    origin(before) != origin(after) || connection(before) != connection(after)
}

async fn apply(
    actor: &Actor,
    row: RepositoryRow,
    change: &RepositoryChange,
) -> Result<RepositoryRow, ApiError> {
    let plugin = loaded::plugin_of(&actor.app, &row)?;
    let before = row.members.clone();
    let changed = judge(row, change, plugin.as_ref().map(|plugin| plugin.description()))?;
    if change.members.is_some() {
        rules::may_add_members(actor, &before, &changed.members).await?;
        rules::members_exist(actor, &changed.members, &changed.format).await?;
    }
    Ok(changed)
}

/// Applies the changes that can be checked without the store. The caller checks that the members
/// exist.
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
