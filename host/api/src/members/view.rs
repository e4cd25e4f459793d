//! What `member` means everywhere in the API.

use packhouse_store::MemberRow;
use serde::Serialize;
use utoipa::ToSchema;

use packhouse_identity::permissions::Permissions;

/// A member as the API shows it.
#[derive(Serialize, ToSchema)]
pub(crate) struct MemberView {
    id: String,
    email: String,
    name: String,
    permissions: Permissions,
    created_at: i64,
}

impl From<&MemberRow> for MemberView {
    fn from(row: &MemberRow) -> MemberView {
        MemberView {
            id: row.id.to_string(),
            email: row.email.clone(),
            name: row.name.clone(),
            permissions: Permissions::read(&row.permissions),
            created_at: row.created_at,
        }
    }
}
