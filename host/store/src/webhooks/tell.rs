//! Telling of what is changed outside of a repository's commits: in the transaction of the change.

use serde_json::{Map, Value as Json, json};

use super::{Event, EventKind, NewDelivery, Wants, insert_deliveries, lane_of, read_wants};
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, WebhookId};

const HOOKS: &str = "SELECT h.id AS hook, h.events, h.repositories, o.name AS organization FROM webhooks h \
    JOIN organizations o ON o.id = h.organization WHERE h.organization = $1 AND h.deleted_at IS NULL AND h.full_at IS NULL ORDER BY h.id";

/// What is told, and of what: a repository where it is one's.
pub(crate) struct Telling {
    pub(crate) kind: EventKind,
    pub(crate) repository: Option<RepositoryId>,
    /// What keeps its order with it: all that has the same two.
    pub(crate) about: (&'static str, i64),
    /// For people and filters.
    pub(crate) subject: String,
    /// An object, to which the organization is added.
    pub(crate) data: Json,
}

/// The hooks of an organization.
pub(crate) struct Listeners {
    organization: OrganizationId,
    name: String,
    wants: Vec<Wants>,
}

impl Listeners {
    /// As they are in this transaction.
    pub(crate) async fn of(
        transaction: &mut Transaction,
        organization: OrganizationId,
    ) -> Result<Listeners, StoreError> {
        let rows = transaction.fetch(HOOKS, values![organization.0]).await?;
        let name = rows.first().map_or(Ok(String::new()), |row| row.columns().text("organization"))?;
        let wants = rows.iter().map(read_wants).collect::<Result<_, _>>()?;
        Ok(Listeners { organization, name, wants })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// Writes an event for those that want it: which those are.
    pub(crate) async fn tell(
        &self,
        transaction: &mut Transaction,
        telling: Telling,
    ) -> Result<Vec<WebhookId>, StoreError> {
        let Telling { kind, repository, about: (scope, id), subject, data } = telling;
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
        let event = Event { kind, subject, data: fields.into(), lane: lane_of(scope, id, ""), place: now };
        let deliveries = NewDelivery::to_each(&hooks, event);
        transaction.execute_each(vec![insert_deliveries(&deliveries, now)]).await?;
        Ok(hooks)
    }
}

/// Writes an event for the hooks of an organization that want it: which those are. One statement, where there are none.
pub(crate) async fn tell(
    transaction: &mut Transaction,
    organization: OrganizationId,
    telling: Telling,
) -> Result<Vec<WebhookId>, StoreError> {
    Listeners::of(transaction, organization).await?.tell(transaction, telling).await
}
