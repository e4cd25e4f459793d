use crate::accounts::rows::texts::read_list;
use crate::db::{Columns, columns_of};
use crate::error::StoreError;
use crate::ids::{OrganizationId, TeamId};

/// A team, whose members have its permissions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TeamRow {
    pub id: TeamId,
    pub organization: OrganizationId,
    /// Name, unique in the organization.
    pub name: String,
    pub description: String,
    /// Permissions as the API's JSON.
    pub permissions: String,
    /// Groups of identity providers. A member of one of them joins the team at sign-in.
    pub external_groups: Vec<String>,
    /// Identifier that a SCIM client gave the team.
    pub external_id: Option<String>,
    /// Number of members, including service accounts.
    pub members: u64,
    /// Time in ms since 1970.
    pub created_at: i64,
}

/// Columns of `teams` that [`team`] reads.
const TEAM_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "name",
    "description",
    "permissions",
    "external_groups",
    "external_id",
    "created_at",
];

/// Returns the column list that [`team`] reads, for the table `teams` with the alias `te`.
pub(crate) fn team_columns() -> String {
    format!(
        "{}, (SELECT COUNT(*) FROM team_members counted WHERE counted.team = te.id) AS te_members",
        columns_of("te", TEAM_COLUMNS)
    )
}

pub(crate) fn team(columns: &mut Columns<'_>) -> Result<TeamRow, StoreError> {
    Ok(TeamRow {
        id: TeamId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        name: columns.text("name")?,
        description: columns.text("description")?,
        permissions: columns.text("permissions")?,
        external_groups: read_list(&columns.text("external_groups")?, "external_groups")?,
        external_id: columns.opt_text("external_id")?,
        created_at: columns.int("created_at")?,
        members: columns.unsigned("members")?,
    })
}
