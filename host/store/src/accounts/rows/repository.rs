//! A repository.

use std::sync::Arc;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};

/// A repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryRow {
    /// Its identifier.
    pub id: RepositoryId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Unique in the organization.
    pub name: String,
    /// Which plugin serves it.
    pub format: String,
    /// `hosted`, `proxy` or `group`.
    pub kind: String,
    /// Whether anyone may read it.
    pub public: bool,
    /// As JSON: what was set, without the defaults.
    pub settings: Arc<str>,
    /// A proxy's upstream address.
    pub upstream: Option<String>,
    /// A group's members, in order.
    pub members: Vec<RepositoryId>,
    /// Of the last commit; rises with each.
    pub revision: u64,
    /// Rises with each change of this row that is not a commit.
    pub settings_revision: u64,
    /// ms since 1970.
    pub created_at: i64,
}

/// The columns of `repositories` that [`repository`] reads.
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
