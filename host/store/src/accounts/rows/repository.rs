use std::sync::Arc;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryRow {
    pub id: RepositoryId,
    pub organization: OrganizationId,
    pub name: String,
    /// Name of the format, whose plugin serves it.
    pub format: String,
    pub kind: String,
    /// True if it can be read without a credential.
    pub public: bool,
    /// Settings as JSON, without defaults.
    pub settings: Arc<str>,
    /// Upstream address of a proxy.
    pub upstream: Option<String>,
    /// Members of a group, in order.
    pub members: Vec<RepositoryId>,
    /// Revision of the last commit; each commit increases it.
    pub revision: u64,
    /// Number that increases with each change of this row other than a commit.
    pub settings_revision: u64,
    /// Time in ms since 1970.
    pub created_at: i64,
}

/// Columns of `repositories` that [`repository`] reads.
pub(crate) const REPOSITORY_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "name",
    "format",
    "kind",
    "public",
    "settings",
    "upstream",
    "members",
    "revision",
    "settings_revision",
    "created_at",
];

pub(crate) fn repository(columns: &mut Columns<'_>) -> Result<RepositoryRow, StoreError> {
    Ok(RepositoryRow {
        id: RepositoryId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        name: columns.text("name")?,
        format: columns.text("format")?,
        kind: columns.text("kind")?,
        public: columns.bool("public")?,
        settings: columns.text("settings")?.into(),
        upstream: columns.opt_text("upstream")?,
        members: members(&columns.text("members")?)?,
        revision: columns.unsigned("revision")?,
        settings_revision: columns.unsigned("settings_revision")?,
        created_at: columns.int("created_at")?,
    })
}

fn members(json: &str) -> Result<Vec<RepositoryId>, StoreError> {
    let ids: Vec<i64> = serde_json::from_str(json)
        .map_err(|problem| StoreError::Corrupt(format!("the members of a group: {problem}")))?;
    Ok(ids.into_iter().map(RepositoryId).collect())
}
