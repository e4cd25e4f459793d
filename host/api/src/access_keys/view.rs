//! View of an access key. It never contains the secret.

use packhouse_store::{AccessKeyRow, KeyOwnerKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::access_keys::state;

/// The owner of an access key.
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
    /// Time in ms since 1970 at which a rotation ends it.
    ends_at: Option<i64>,
    last_used_at: Option<i64>,
    /// E-mail address of the member who created it.
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
