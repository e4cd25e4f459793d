//! An access key as the API shows it: never its secret, but for the one answer that makes it.

use packhouse_store::{AccessKeyRow, KeyOwnerKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::tokens::Replaced;
use packhouse_identity::Secret;
use packhouse_identity::access::State;

/// Whose a key is.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyOwnerView {
    /// `subscriber` or `subscriber_group`.
    kind: &'static str,
    id: String,
}

/// An access key.
#[derive(Serialize, ToSchema)]
pub(super) struct AccessKeyView {
    id: String,
    name: Option<String>,
    expires_at: Option<i64>,
    created_at: i64,
    /// When a rotation ends it.
    ends_at: Option<i64>,
    last_used_at: Option<i64>,
    /// E-mail of who made it.
    created_by: String,
    owner: KeyOwnerView,
    /// `active`, `rotating`, `revoked` or `expired`.
    state: &'static str,
}

impl AccessKeyView {
    /// The view at `now` (ms since 1970).
    pub(super) fn new(row: AccessKeyRow, kind: KeyOwnerKind, now: i64) -> AccessKeyView {
        AccessKeyView {
            id: row.id.to_string(),
            state: state(&row, now).name(),
            name: row.name,
            expires_at: row.expires_at,
            created_at: row.created_at,
            ends_at: row.ends_at,
            last_used_at: row.last_used_at,
            created_by: row.created_by,
            owner: KeyOwnerView { kind: kind.name(), id: row.owner.to_string() },
        }
    }
}

/// The key's state at `now`.
pub(super) fn state(row: &AccessKeyRow, now: i64) -> State {
    State::at(now, row.revoked_at, row.expires_at, row.ends_at)
}

/// A key that was just made, with its secret.
#[derive(Serialize, ToSchema)]
pub(super) struct NewAccessKeyView {
    #[serde(flatten)]
    key: AccessKeyView,
    /// Shown this once.
    secret: String,
    /// What it takes the place of, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Replaced>,
}

impl NewAccessKeyView {
    /// The view.
    pub(super) fn new(key: AccessKeyView, secret: &Secret, replaced: Option<Replaced>) -> NewAccessKeyView {
        NewAccessKeyView { key, secret: secret.reveal().to_owned(), replaced }
    }
}
