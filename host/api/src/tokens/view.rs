//! View of a token. It never contains the secret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::tokens::{LEGACY, OwnedToken, state};

/// Owner of a service key.
#[derive(Serialize, ToSchema)]
pub(crate) struct BackingView {
    /// `org` or `repo`.
    kind: String,
    /// Id of the repository, if the kind is `repo`.
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
    /// Patterns of the packages that it may publish and delete; null for all.
    packages: Option<Vec<String>>,
    expires_at: Option<i64>,
    created_at: i64,
    /// Time in ms since 1970 at which a rotation ends it.
    ends_at: Option<i64>,
    last_used_at: Option<i64>,
    /// E-mail address of its owner; null for a service key.
    owner: Option<String>,
    /// E-mail address of the creator; for a service key, also the user name of its Basic
    /// credential.
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
            packages: row.packages,
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
