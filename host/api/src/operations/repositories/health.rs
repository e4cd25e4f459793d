//! The health of repositories: what the upstreams of proxies do at present.

use packhouse_store::{RepositoryId, RepositoryRow};
use packhouse_upstream::{HealthState, HealthView};

use super::{GROUP, PROXY, knows};
use crate::error::ApiError;
use crate::operations::Actor;

/// The health of a repository that has an upstream, itself or through its members.
#[derive(Debug)]
pub enum RepositoryHealth {
    /// Of a proxy: that of its upstream.
    Proxy(HealthView),
    /// Of a group: that of its members that the actor may know of, in order.
    Group(Vec<MemberHealth>),
}

/// A group's member, and how it is.
#[derive(Debug)]
pub struct MemberHealth {
    /// Its id.
    pub id: RepositoryId,
    /// Its name.
    pub name: String,
    /// Whether its upstream answers. A hosted repository is always well.
    pub state: HealthState,
    /// What happened, for people.
    pub detail: Option<String>,
}

impl RepositoryHealth {
    /// The state of the whole: the worst of any part.
    pub fn state(&self) -> HealthState {
        match self {
            RepositoryHealth::Proxy(view) => view.state,
            RepositoryHealth::Group(members) => {
                members.iter().map(|member| member.state).max().unwrap_or_default()
            }
        }
    }
}

/// The health of a repository, as this server sees it; none of a hosted one. Who may know of a
/// repository may know it.
pub async fn health_of(actor: &Actor, row: &RepositoryRow) -> Result<Option<RepositoryHealth>, ApiError> {
    match row.kind.as_str() {
        PROXY => Ok(Some(RepositoryHealth::Proxy(actor.app.upstreams.health(row.id)))),
        GROUP => Ok(Some(RepositoryHealth::Group(members(actor, row).await?))),
        _ => Ok(None),
    }
}

async fn members(actor: &Actor, group: &RepositoryRow) -> Result<Vec<MemberHealth>, ApiError> {
    let mut members = Vec::with_capacity(group.members.len());
    for id in group.members.iter().filter(|id| knows(actor, **id)) {
        let Some(row) = actor.app.store.find_repository(actor.organization(), *id).await? else { continue };
        let view = (row.kind == PROXY).then(|| actor.app.upstreams.health(row.id));
        let (state, detail) = view.map(|view| (view.state, view.detail)).unwrap_or_default();
        members.push(MemberHealth { id: row.id, name: row.name, state, detail });
    }
    Ok(members)
}
