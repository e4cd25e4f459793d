//! A token as the API shows it: never its secret, but for the one answer that makes it.

use packhouse_store::TokenRow;
use serde::Serialize;
use utoipa::ToSchema;

use packhouse_identity::Secret;
use packhouse_identity::access::State;

/// What a service key belongs to.
#[derive(Serialize, ToSchema)]
pub(super) struct BackingView {
    /// `org` or `repo`.
    kind: String,
    /// The repository, where it is `repo`.
    id: Option<String>,
}

/// A token or service key.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenView {
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
    /// The view at `now` (ms since 1970). A member's token was made by its owner or for it; `owner` is that e-mail.
    pub(super) fn new(row: &TokenRow, owner: Option<&str>, now: i64) -> TokenView {
        let scope = [(row.scope.read, "read"), (row.scope.write, "write")];
        let backing = row.backing.clone().filter(|kind| kind != LEGACY);
        TokenView {
            id: row.id.to_string(),
            name: row.name.clone(),
            scope: scope.into_iter().filter(|(held, _)| *held).map(|(_, name)| name).collect(),
            format: row.format.clone(),
            repositories: row.repositories.iter().map(ToString::to_string).collect(),
            expires_at: row.expires_at,
            created_at: row.created_at,
            ends_at: row.ends_at,
            last_used_at: row.last_used_at,
            owner: row.owner.and(owner).map(str::to_owned),
            created_by: row.created_by.clone(),
            backing: backing
                .map(|kind| BackingView { kind, id: row.backing_repository.map(|id| id.to_string()) }),
            state: state(row, now).name(),
        }
    }
}

/// The token's state at `now`.
pub(super) fn state(row: &TokenRow, now: i64) -> State {
    State::at(now, row.revoked_at, row.expires_at, row.ends_at)
}

/// The backing of a token that was brought in without an owner.
pub(super) const LEGACY: &str = "legacy";

/// A token that was just made, with its secret.
#[derive(Serialize, ToSchema)]
pub(super) struct NewTokenView {
    #[serde(flatten)]
    token: TokenView,
    /// Shown this once.
    secret: String,
    /// What it takes the place of, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Replaced>,
}

/// The token that was rotated.
#[derive(Serialize, ToSchema)]
pub struct Replaced {
    /// Its id.
    pub id: String,
    /// Until when it works.
    pub ends_at: i64,
}

impl NewTokenView {
    /// The view.
    pub(super) fn new(token: TokenView, secret: &Secret, replaced: Option<Replaced>) -> NewTokenView {
        NewTokenView { token, secret: secret.reveal().to_owned(), replaced }
    }
}
