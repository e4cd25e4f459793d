//! Views of teams and their members.

use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberKind, TeamMember, TeamRow};
use serde::Serialize;
use utoipa::ToSchema;

/// A team with its permissions.
#[derive(Serialize, ToSchema)]
pub(crate) struct TeamView {
    id: String,
    name: String,
    /// Text for people; may be empty.
    description: String,
    /// Permissions of all members of the team.
    permissions: Permissions,
    /// Groups of an identity provider, whose members join the team when they sign in.
    external_groups: Vec<String>,
    /// Number of members, including service accounts.
    members: u64,
    created_at: i64,
}

impl From<TeamRow> for TeamView {
    fn from(row: TeamRow) -> TeamView {
        TeamView {
            id: row.id.to_string(),
            name: row.name,
            description: row.description,
            permissions: Permissions::read(&row.permissions),
            external_groups: row.external_groups,
            members: row.members,
            created_at: row.created_at,
        }
    }
}

/// A member of a team.
#[derive(Serialize, ToSchema)]
pub(crate) struct TeamMemberView {
    id: String,
    /// E-mail address; null for a service account.
    email: Option<String>,
    name: String,
    /// `manual`, or `external` if a group of an identity provider or a directory made the
    /// membership.
    source: &'static str,
}

impl From<TeamMember> for TeamMemberView {
    fn from(TeamMember { member, source }: TeamMember) -> TeamMemberView {
        TeamMemberView {
            id: member.id.to_string(),
            email: (member.kind == MemberKind::Person).then_some(member.email),
            name: member.name,
            source: source.name(),
        }
    }
}
