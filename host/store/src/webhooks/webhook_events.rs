//! Events of changes outside of repository commits, written in the transaction of the change.

use serde_json::{Map, Value as Json, json};

use super::{EventKind, NewDelivery, QueuedEvent, WebhookFilter, insert_deliveries, lane_of, read_filter};
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, WebhookId};

const HOOKS: &str = "SELECT h.id AS hook, h.events, h.repositories, o.name AS organization FROM webhooks h \
    JOIN organizations o ON o.id = h.organization WHERE h.organization = $1 AND h.deleted_at IS NULL AND h.full_at IS NULL ORDER BY h.id";

/// A webhook event; `repository` is set if the event is about a repository.
pub(crate) struct NewWebhookEvent {
    pub(crate) kind: EventKind,
    pub(crate) repository: Option<RepositoryId>,
    /// Scope and id of the lane. Events with the same two values keep their order.
    pub(crate) about: (&'static str, i64),
    /// Subject for people and filters.
    pub(crate) subject: String,
    /// JSON object, to which the organization is added.
    pub(crate) data: Json,
}

/// Webhooks of an organization, with the events that each one receives.
pub(crate) struct Listeners {
    organization: OrganizationId,
    name: String,
    wants: Vec<WebhookFilter>,
}

impl Listeners {
    /// Reads the webhooks as they are in this transaction.
    pub(crate) async fn of(
        transaction: &mut Transaction,
        organization: OrganizationId,
    ) -> Result<Listeners, StoreError> {
        let rows = transaction.fetch(HOOKS, values![organization.0]).await?;
        let name = rows.first().map_or(Ok(String::new()), |row| row.columns().text("organization"))?;
        let wants = rows.iter().map(read_filter).collect::<Result<_, _>>()?;
        Ok(Listeners { organization, name, wants })
    }

    /// True if the organization has no webhooks.
    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// Writes an event for the webhooks that receive it, and returns them.
    pub(crate) async fn write_event(
        &self,
        transaction: &mut Transaction,
        new: NewWebhookEvent,
    ) -> Result<Vec<WebhookId>, StoreError> {
        let NewWebhookEvent { kind, repository, about: (scope, id), subject, data } = new;
        let wanting = self.wants.iter().filter(|wants| wants.wants(kind, repository));
        let hooks: Vec<WebhookId> = wanting.map(|wants| wants.hook).collect();
        if hooks.is_empty() {
            return Ok(hooks);
        }
        let mut fields = match data {
            Json::Object(fields) => fields,
            _ => Map::new(),
        };
        let organization = json!({"id": self.organization.to_string(), "name": self.name});
        fields.insert("organization".to_owned(), organization);
        let now = transaction.now_ms();
        let event =
            QueuedEvent { kind, subject, data: fields.into(), lane: lane_of(scope, id, ""), place: now };
        let deliveries = NewDelivery::to_each(&hooks, event);
        transaction.execute_each(vec![insert_deliveries(&deliveries, now)]).await?;
        Ok(hooks)
    }
}

/// Writes an event for the webhooks of an organization that receive it, and returns them. Costs one
/// statement without such webhooks.
pub(crate) async fn write_event(
    transaction: &mut Transaction,
    organization: OrganizationId,
    new: NewWebhookEvent,
) -> Result<Vec<WebhookId>, StoreError> {
    Listeners::of(transaction, organization).await?.write_event(transaction, new).await
}
