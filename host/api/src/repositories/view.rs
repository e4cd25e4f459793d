//! View of a repository in responses.

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
    /// Address of the upstream, http or https.
    pub url: String,
}

/// A repository.
#[derive(Serialize, ToSchema)]
pub(super) struct RepositoryView {
    id: String,
    name: String,
    format: String,
    kind: String,
    /// Address for its clients.
    connection_address: String,
    /// Every setting with its value in force.
    #[schema(value_type = Object)]
    settings: Map<String, Value>,
    upstream: Option<Upstream>,
    /// Members of a group, in order.
    members: Vec<String>,
    created_at: i64,
    /// Listed packages; null for a group, which has no content of its own.
    packages: Option<u64>,
    /// Versions of these packages.
    versions: Option<u64>,
    /// Bytes of their files; each path counts once.
    bytes: Option<u64>,
    /// Number of downloads of versions.
    downloads: Option<u64>,
    /// Time of the latest publish, in ms since 1970.
    last_published_at: Option<i64>,
    /// Health of the upstreams; absent for a hosted repository and in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
}

/// Health of the upstreams, as the answering server last observed it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Health {
    Proxy(HealthView),
    Group(GroupHealth),
}

/// The health of a group.
#[derive(Serialize, ToSchema)]
struct GroupHealth {
    /// Worst state of all members.
    state: HealthState,
    /// Members that the caller may see, in order.
    members: Vec<MemberHealth>,
}

/// The health of a group's member.
#[derive(Serialize, ToSchema)]
struct MemberHealth {
    id: String,
    name: String,
    state: HealthState,
    /// Details for people, or null.
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
    /// Creates the view. `base_url` is the organization's public address. 503 while the format's
    /// plugin is being compiled, because it defines settings.
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

    /// Adds the health of the upstreams.
    pub(super) fn with_health(self, health: Option<RepositoryHealth>) -> RepositoryView {
        RepositoryView { health: health.map(Health::of), ..self }
    }
}
