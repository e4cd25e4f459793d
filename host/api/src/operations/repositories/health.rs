//! Health of repositories: the present state of their upstreams.

use packhouse_store::{RepositoryId, RepositoryRow};
use packhouse_upstream::{HealthState, HealthView};

use super::{GROUP, PROXY, may_see};
use crate::error::ApiError;
use crate::operations::Actor;

/// Health of a repository with an upstream, its own or a member's.
#[derive(Debug)]
pub enum RepositoryHealth {
    /// Health of a proxy's upstream.
    Proxy(HealthView),
    /// Health of the members of a group that the actor may see, in order.
    Group(Vec<MemberHealth>),
}

/// Group member with its health.
#[derive(Debug)]
pub struct MemberHealth {
    pub id: RepositoryId,
    pub name: String,
    /// State of its upstream. A hosted repository is always healthy.
    pub state: HealthState,
    /// Details, as a text for people.
    pub detail: Option<String>,
}

impl RepositoryHealth {
    /// Worst state of all parts.
    pub fn state(&self) -> HealthState {
        match self {
            RepositoryHealth::Proxy(view) => view.state,
            RepositoryHealth::Group(members) => {
                members.iter().map(|member| member.state).max().unwrap_or_default()
            }
        }
    }
}

/// Returns the health of a repository, as this server last observed it; `None` for a hosted one.
/// Whoever may see the repository may see it.
pub async fn health_of(actor: &Actor, row: &RepositoryRow) -> Result<Option<RepositoryHealth>, ApiError> {
    match row.kind.as_str() {
        PROXY => Ok(Some(RepositoryHealth::Proxy(actor.app.upstreams.health(row.id)))),
        GROUP => Ok(Some(RepositoryHealth::Group(members(actor, row).await?))),
        _ => Ok(None),
    }
}

async fn members(actor: &Actor, group: &RepositoryRow) -> Result<Vec<MemberHealth>, ApiError> {
    let mut members = Vec::with_capacity(group.members.len());
    let rows = actor.app.store.find_repositories(actor.organization(), &group.members).await?;
    for row in rows.into_iter().filter(|row| may_see(actor, row)) {
        let view = (row.kind == PROXY).then(|| actor.app.upstreams.health(row.id));
        let (state, detail) = view.map(|view| (view.state, view.detail)).unwrap_or_default();
        members.push(MemberHealth { id: row.id, name: row.name, state, detail });
    }
    Ok(members)
}
