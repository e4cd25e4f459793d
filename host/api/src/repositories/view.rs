//! A repository as the API shows it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::operations::loaded;
use crate::operations::repositories::{self, RepositoryHealth, RepositoryWithUsage};
use packhouse_app::App;
use packhouse_config::repository_settings;
use packhouse_upstream::{HealthState, HealthView};

/// A proxy's upstream.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    /// Its address, http or https.
    pub url: String,
}

/// A repository.
#[derive(Serialize, ToSchema)]
pub(super) struct RepositoryView {
    id: String,
    name: String,
    format: String,
    kind: String,
    /// The address for its clients.
    connection_address: String,
    /// Every setting with what is in force.
    #[schema(value_type = Object)]
    settings: Map<String, Value>,
    upstream: Option<Upstream>,
    /// Of a group, in order.
    members: Vec<String>,
    created_at: i64,
    /// Packages that it shows; null for a group, which holds nothing of its own.
    packages: Option<u64>,
    /// Their versions.
    versions: Option<u64>,
    /// Bytes of their files, each path once.
    bytes: Option<u64>,
    /// How often a version was fetched.
    downloads: Option<u64>,
    /// When a version last came, in ms since 1970.
    last_published_at: Option<i64>,
    /// What upstreams do at present; absent of a hosted repository, and in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
}

/// What upstreams do at present, as the server that answers saw it last.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Health {
    Proxy(HealthView),
    Group(GroupHealth),
}

/// The health of a group.
#[derive(Serialize, ToSchema)]
struct GroupHealth {
    /// The worst of all members.
    state: HealthState,
    /// The members that you may know of, in order.
    members: Vec<MemberHealth>,
}

/// The health of a group's member.
#[derive(Serialize, ToSchema)]
struct MemberHealth {
    id: String,
    name: String,
    state: HealthState,
    /// What happened, for people; null where there is nothing to say.
    detail: Option<String>,
}

impl Health {
    fn of(health: RepositoryHealth) -> Health {
        let state = health.state();
        match health {
            RepositoryHealth::Proxy(view) => Health::Proxy(view),
            RepositoryHealth::Group(members) => {
                let member = |it: repositories::MemberHealth| MemberHealth {
                    id: it.id.to_string(),
                    name: it.name,
                    state: it.state,
                    detail: it.detail,
                };
                Health::Group(GroupHealth { state, members: members.into_iter().map(member).collect() })
            }
        }
    }
}

impl RepositoryView {
    /// The view, under the organization's public address. 503 while the format, which has settings of its own, is being compiled.
    pub(super) fn new(
        app: &App,
        base_url: &str,
        with: RepositoryWithUsage,
    ) -> Result<RepositoryView, ApiError> {
        let RepositoryWithUsage { row, usage } = with;
        let plugin = loaded::plugin_of(app, &row)?;
        let description = plugin.as_ref().map(|plugin| plugin.description());
        Ok(RepositoryView {
            id: row.id.to_string(),
            connection_address: format!("{base_url}/repositories/{}/", row.name),
            settings: repository_settings::effective(&row.settings, row.public, description),
            name: row.name,
            format: row.format,
            kind: row.kind,
            upstream: row.upstream.map(|url| Upstream { url }),
            members: row.members.iter().map(ToString::to_string).collect(),
            created_at: row.created_at,
            packages: usage.map(|usage| usage.packages),
            versions: usage.map(|usage| usage.versions),
            bytes: usage.map(|usage| usage.bytes),
            downloads: usage.map(|usage| usage.downloads),
            last_published_at: usage.and_then(|usage| usage.last_published_at),
            health: None,
        })
    }

    /// The same with what upstreams do at present.
    pub(super) fn with_health(self, health: Option<RepositoryHealth>) -> RepositoryView {
        RepositoryView { health: health.map(Health::of), ..self }
    }
}
