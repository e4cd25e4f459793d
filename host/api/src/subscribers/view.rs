//! Views of subscribers and groups.

use packhouse_store::KeyOwnerRow;
use serde::Serialize;
use utoipa::ToSchema;

/// A subscriber.
#[derive(Serialize, ToSchema)]
pub(super) struct SubscriberView {
    id: String,
    name: String,
    email: Option<String>,
    /// Ids of the repositories granted to it directly; its keys also reach those of its groups.
    repositories: Vec<String>,
    created_at: i64,
}

impl From<KeyOwnerRow> for SubscriberView {
    fn from(row: KeyOwnerRow) -> SubscriberView {
        SubscriberView {
            id: row.id.to_string(),
            name: row.name,
            email: row.email,
            repositories: row.repositories.iter().map(ToString::to_string).collect(),
            created_at: row.created_at,
        }
    }
}

/// A subscriber group.
#[derive(Serialize, ToSchema)]
pub(super) struct SubscriberGroupView {
    id: String,
    name: String,
    /// Ids of its subscribers.
    subscribers: Vec<String>,
    /// Ids of the repositories granted to it.
    repositories: Vec<String>,
    created_at: i64,
}

impl From<KeyOwnerRow> for SubscriberGroupView {
    fn from(row: KeyOwnerRow) -> SubscriberGroupView {
        SubscriberGroupView {
            id: row.id.to_string(),
            name: row.name,
            subscribers: row.subscribers.iter().map(ToString::to_string).collect(),
            repositories: row.repositories.iter().map(ToString::to_string).collect(),
            created_at: row.created_at,
        }
    }
}
