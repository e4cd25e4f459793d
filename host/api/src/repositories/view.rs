//! A repository as the API shows it.

use packhouse_store::RepositoryRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use packhouse_app::App;
use packhouse_config::repository_settings;

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
}

impl RepositoryView {
    /// The view, under the organization's public address.
    pub(super) fn new(app: &App, base_url: &str, row: RepositoryRow) -> RepositoryView {
        let plugin = app.runtime.plugin(&row.format);
        let description = plugin.as_ref().map(|plugin| plugin.description());
        RepositoryView {
            id: row.id.to_string(),
            connection_address: format!("{base_url}/repositories/{}/", row.name),
            settings: repository_settings::effective(&row.settings, row.public, description),
            name: row.name,
            format: row.format,
            kind: row.kind,
            upstream: row.upstream.map(|url| Upstream { url }),
            members: row.members.iter().map(ToString::to_string).collect(),
            created_at: row.created_at,
        }
    }
}
