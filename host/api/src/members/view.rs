//! Views of members, invitations and password resets.

use packhouse_identity::permissions::{Permissions, RepositoryAction};
use packhouse_store::{MemberRow, TeamRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::members::{self, MemberDetails, OneTimeCode, Reachable};

/// A member.
#[derive(Serialize, ToSchema)]
pub(crate) struct MemberView {
    id: String,
    email: String,
    name: String,
    /// The member's own permissions, without those of teams.
    permissions: Permissions,
    /// False while the member is suspended.
    active: bool,
    created_at: i64,
    /// Teams of the member; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    teams: Option<Vec<TeamName>>,
    /// Own permissions together with those of all teams; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_permissions: Option<Permissions>,
}

/// A team of a member.
#[derive(Serialize, ToSchema)]
pub(crate) struct TeamName {
    id: String,
    name: String,
}

impl From<TeamRow> for TeamName {
    fn from(row: TeamRow) -> TeamName {
        TeamName { id: row.id.to_string(), name: row.name }
    }
}

impl From<&MemberRow> for MemberView {
    /// View without teams and effective permissions.
    fn from(row: &MemberRow) -> MemberView {
        MemberView {
            id: row.id.to_string(),
            email: row.email.clone(),
            name: row.name.clone(),
            permissions: Permissions::read(&row.permissions),
            active: row.active,
            created_at: row.created_at,
            teams: None,
            effective_permissions: None,
        }
    }
}

impl From<MemberDetails> for MemberView {
    fn from(MemberDetails { row, teams, effective }: MemberDetails) -> MemberView {
        MemberView::from(&row).with(teams, effective)
    }
}

impl MemberView {
    fn with(self, teams: Vec<TeamRow>, effective: Permissions) -> MemberView {
        MemberView {
            teams: Some(teams.into_iter().map(TeamName::from).collect()),
            effective_permissions: Some(effective.deduplicated()),
            ..self
        }
    }
}

/// An organization, as its members see it.
#[derive(Serialize, ToSchema)]
pub(super) struct OrganizationView {
    id: String,
    name: String,
    base_url: String,
}

/// A repository with the caller's actions in it.
#[derive(Serialize, ToSchema)]
pub(super) struct ReachableRepository {
    id: String,
    name: String,
    format: String,
    kind: String,
    actions: Vec<RepositoryAction>,
}

impl From<Reachable> for ReachableRepository {
    fn from(Reachable { row, rights }: Reachable) -> ReachableRepository {
        let held = [
            (rights.read, RepositoryAction::Read),
            (rights.publish, RepositoryAction::Publish),
            (rights.delete, RepositoryAction::Delete),
            (rights.manage, RepositoryAction::Manage),
        ];
        ReachableRepository {
            id: row.id.to_string(),
            name: row.name,
            format: row.format,
            kind: row.kind,
            actions: held.into_iter().filter(|(held, _)| *held).map(|(_, action)| action).collect(),
        }
    }
}

/// The caller.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    #[serde(flatten)]
    member: MemberView,
    organization: OrganizationView,
    repositories: Vec<ReachableRepository>,
}

impl Me {
    pub(super) fn new(member: &MemberRow, me: members::Me) -> Me {
        let members::Me { organization, name, base_url, permissions, teams, effective, repositories } = me;
        let member = MemberView { permissions, ..MemberView::from(member) };
        Me {
            member: member.with(teams, effective),
            organization: OrganizationView { id: organization.to_string(), name, base_url },
            repositories: repositories.into_iter().map(ReachableRepository::from).collect(),
        }
    }
}

/// An invitation.
#[derive(Serialize, ToSchema)]
pub(super) struct InvitationView {
    /// Code for POST /v1/invitations/{code}/accept, which works once. It is shown only once.
    code: String,
    expires_at: i64,
    /// True if it was mailed; absent if no mail server is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed: Option<bool>,
}

impl From<OneTimeCode> for InvitationView {
    fn from(OneTimeCode { secret, expires_at, mailed }: OneTimeCode) -> InvitationView {
        InvitationView { code: secret.reveal().to_owned(), expires_at, mailed }
    }
}

/// A password reset.
#[derive(Serialize, ToSchema)]
pub(super) struct ResetView {
    /// Code for POST /v1/password-resets/{code}, which works once. It is shown only once.
    reset_code: String,
    expires_at: i64,
    /// True if it was mailed; absent if no mail server is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed: Option<bool>,
}

impl From<OneTimeCode> for ResetView {
    fn from(OneTimeCode { secret, expires_at, mailed }: OneTimeCode) -> ResetView {
        ResetView { reset_code: secret.reveal().to_owned(), expires_at, mailed }
    }
}
