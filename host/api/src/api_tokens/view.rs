//! View of an API token. It never contains the secret.

use packhouse_store::ApiTokenRow;
use serde::Serialize;
use utoipa::ToSchema;

use crate::operations::api_tokens::{OwnedApiToken, state};

/// An API token without its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiTokenView {
    id: String,
    name: String,
    /// Id of the member or service account that owns it.
    owner: String,
    /// E-mail address of the member, or name of the service account.
    owner_name: String,
    scopes: Vec<String>,
    /// Actions that it does without a further confirmation.
    sensitive: Vec<String>,
    /// E-mail address of the member who created it.
    created_by: String,
    expires_at: i64,
    created_at: i64,
    /// Time in ms since 1970 at which a rotation ends it.
    ends_at: Option<i64>,
    last_used_at: Option<i64>,
    /// `active`, `rotating`, `revoked` or `expired`.
    state: &'static str,
}

impl ApiTokenView {
    /// The view at `now` (ms since 1970).
    pub(super) fn new(OwnedApiToken { row, owner }: OwnedApiToken, now: i64) -> ApiTokenView {
        let state = state(&row, now).name();
        let ApiTokenRow { id, name, scopes, sensitive, created_by, .. } = row;
        ApiTokenView {
            id: id.to_string(),
            name,
            owner: row.owner.to_string(),
            owner_name: owner,
            scopes,
            sensitive,
            created_by,
            expires_at: row.expires_at,
            created_at: row.created_at,
            ends_at: row.ends_at,
            last_used_at: row.last_used_at,
            state,
        }
    }
}
