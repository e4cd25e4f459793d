use std::fmt;

use crate::db::{Columns, columns_of};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberKind {
    /// A person, who signs in.
    Person,
    /// A service account, which acts through API tokens only.
    Service,
}

impl MemberKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MemberKind::Person => "person",
            MemberKind::Service => "service",
        }
    }

    fn read(name: &str) -> Result<MemberKind, StoreError> {
        match name {
            "person" => Ok(MemberKind::Person),
            "service" => Ok(MemberKind::Service),
            _ => Err(StoreError::Corrupt(format!("the kind of a member: {name:?}"))),
        }
    }
}

/// A member: a person or a service account. Its `Debug` hides the password's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberRow {
    pub id: MemberId,
    pub organization: OrganizationId,
    /// E-mail address in lower case; unique in the organization. A service account has
    /// `service-account:ID` instead.
    pub email: String,
    pub name: String,
    /// Argon2id in PHC form, or empty if no password is accepted.
    pub password_hash: String,
    /// The member's own permissions as the API's JSON.
    pub permissions: String,
    /// Time in ms since 1970.
    pub created_at: i64,
    pub kind: MemberKind,
    /// False while the member is suspended.
    pub active: bool,
    /// Identifier that a SCIM client gave the member.
    pub external_id: Option<String>,
    /// Permissions of the member's teams: a JSON list of the API's permissions objects, in any
    /// order. Empty text without teams.
    pub team_permissions: String,
}

impl fmt::Debug for MemberRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberRow").field("id", &self.id).field("email", &self.email).finish_non_exhaustive()
    }
}

/// Columns of `members` that [`member`] reads.
const MEMBER_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "email",
    "name",
    "password_hash",
    "permissions",
    "created_at",
    "kind",
    "active",
    "external_id",
];

/// Returns the column list that [`member`] reads, for the table `members` with this alias. The
/// permissions of the member's teams are a subquery, so that a look-up stays one statement.
pub(crate) fn member_columns(table: &str) -> String {
    format!(
        "{}, COALESCE((SELECT '[' || string_agg(te.permissions, ',') || ']' FROM team_members tm \
         JOIN teams te ON te.id = tm.team WHERE tm.member = {table}.id), '') AS {table}_team_permissions",
        columns_of(table, MEMBER_COLUMNS)
    )
}

pub(crate) fn member(columns: &mut Columns<'_>) -> Result<MemberRow, StoreError> {
    Ok(MemberRow {
        id: MemberId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        email: columns.text("email")?,
        name: columns.text("name")?,
        password_hash: columns.text("password_hash")?,
        permissions: columns.text("permissions")?,
        created_at: columns.int("created_at")?,
        kind: MemberKind::read(&columns.text("kind")?)?,
        active: columns.bool("active")?,
        external_id: columns.opt_text("external_id")?,
        team_permissions: columns.text("team_permissions")?,
    })
}
