//! A token as the API shows it: never its secret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::tokens::{LEGACY, OwnedToken, state};

/// What a service key belongs to.
#[derive(Serialize, ToSchema)]
pub(crate) struct BackingView {
    /// `org` or `repo`.
    kind: String,
    /// The repository, where it is `repo`.
    id: Option<String>,
}

/// A token or service key.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenView {
    id: String,
    name: String,
    /// `read`, `write`.
    scope: Vec<&'static str>,
    format: String,
    repositories: Vec<String>,
    expires_at: Option<i64>,
    created_at: i64,
    /// When a rotation ends it.
    ends_at: Option<i64>,
    last_used_at: Option<i64>,
    /// E-mail of the member it belongs to; null for a service key.
    owner: Option<String>,
    /// E-mail of who made it; with a service key the username of its Basic credential.
    created_by: String,
    backing: Option<BackingView>,
    /// `active`, `rotating`, `revoked` or `expired`.
    state: &'static str,
}

impl TokenView {
    /// The view at `now` (ms since 1970).
    pub(super) fn new(OwnedToken { row, owner }: OwnedToken, now: i64) -> TokenView {
        let state = state(&row, now).name();
        let scope = [(row.scope.read, "read"), (row.scope.write, "write")];
        let backing = row.backing.filter(|kind| kind != LEGACY);
        TokenView {
            id: row.id.to_string(),
            name: row.name,
            scope: scope.into_iter().filter(|(held, _)| *held).map(|(_, name)| name).collect(),
            format: row.format,
            repositories: row.repositories.iter().map(ToString::to_string).collect(),
            expires_at: row.expires_at,
            created_at: row.created_at,
            ends_at: row.ends_at,
            last_used_at: row.last_used_at,
            owner,
            created_by: row.created_by,
            backing: backing
                .map(|kind| BackingView { kind, id: row.backing_repository.map(|id| id.to_string()) }),
            state,
        }
    }
}
