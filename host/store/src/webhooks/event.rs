//! Webhook events: their names, the webhooks that receive them, and the rows of their deliveries.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::db::{MultiRow, Row, Value};
use crate::error::StoreError;
use crate::ids::{RepositoryId, WebhookId, new_id};

/// Name of the test event, which a user requests.
pub const TEST_EVENT: &str = "webhook.test";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),* $(,)?) => {
        /// Kind of an event that a webhook can receive.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            /// Name of the event on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A version, or files of one, were published.
    PackagePublished = "package.published",
    /// A version, or files of one, were deleted.
    PackageDeleted = "package.deleted",
    /// The state of a version changed: yanked, deprecated, withdrawn, or normal again.
    PackageStateChanged = "package.state_changed",
    /// A tag was moved to another version, or removed.
    TagMoved = "tag.moved",
    RepositoryCreated = "repository.created",
    /// A repository and its content were deleted.
    RepositoryDeleted = "repository.deleted",
    /// A token or service key was created.
    TokenCreated = "token.created",
    /// A token or service key was revoked.
    TokenRevoked = "token.revoked",
    MemberInvited = "member.invited",
    /// A policy blocked a request.
    PolicyDenied = "policy.denied",
    /// Another component was activated for a format.
    PluginActivated = "plugin.activated",
    /// Stored bytes are damaged or missing.
    BlobCorrupt = "blob.corrupt",
}

impl EventKind {
    /// The kind of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<EventKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// An event to be delivered.
#[derive(Clone, Debug)]
pub(crate) struct QueuedEvent {
    pub(crate) kind: EventKind,
    /// Subject of the event, for people and filters.
    pub(crate) subject: String,
    /// Data of the event, a JSON object.
    pub(crate) data: Json,
    /// Lane in which the order is preserved: see [`lane_of`].
    pub(crate) lane: i64,
    /// Position of the event within the lane.
    pub(crate) place: i64,
}

/// Number of a lane, whose events are delivered one after the other. If two lanes get the same
/// number by chance, their events only wait for each other.
pub(crate) fn lane_of(scope: &str, id: i64, name: &str) -> i64 {
    let hash = Sha256::digest(format!("{scope} {id} {name}"));
    hash.first_chunk::<8>().map_or(0, |first| i64::from_be_bytes(*first))
}

/// Events that a webhook receives.
#[derive(Clone, Debug)]
pub(crate) struct WebhookFilter {
    pub(crate) hook: WebhookId,
    kinds: BTreeSet<EventKind>,
    /// Repositories of these events; `None` for all.
    repositories: Option<BTreeSet<RepositoryId>>,
}

impl WebhookFilter {
    /// True if the webhook receives events of this kind about this repository. `None` is an event
    /// about no repository.
    pub(crate) fn wants(&self, kind: EventKind, repository: Option<RepositoryId>) -> bool {
        let reached = match (&self.repositories, repository) {
            (Some(only), Some(repository)) => only.contains(&repository),
            _ => true,
        };
        reached && self.kinds.contains(&kind)
    }
}

/// Reads the columns `hook`, `events` and `repositories` of a row.
pub(crate) fn read_filter(row: &Row) -> Result<WebhookFilter, StoreError> {
    let mut columns = row.columns();
    let hook = WebhookId(columns.int("hook")?);
    let kinds = kinds_of(hook, &columns.text("events")?)?;
    let repositories = repositories_of(hook, &columns.text("repositories")?)?;
    Ok(WebhookFilter {
        hook,
        kinds: kinds.into_iter().collect(),
        repositories: repositories.map(BTreeSet::from_iter),
    })
}

/// Kinds of events in a JSON list. Names that only a newer program knows are ignored.
pub(super) fn kinds_of(hook: WebhookId, text: &str) -> Result<Vec<EventKind>, StoreError> {
    let names: Vec<String> = serde_json::from_str(text).map_err(|problem| damaged(hook, &problem))?;
    Ok(names.iter().filter_map(|name| EventKind::of(name)).collect())
}

pub(super) fn repositories_of(hook: WebhookId, text: &str) -> Result<Option<Vec<RepositoryId>>, StoreError> {
    let ids: Option<Vec<i64>> = serde_json::from_str(text).map_err(|problem| damaged(hook, &problem))?;
    Ok(ids.map(|ids| ids.into_iter().map(RepositoryId).collect()))
}

fn damaged(hook: WebhookId, problem: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the webhook {hook}: {problem}"))
}

/// A delivery of an event to one webhook.
#[derive(Clone, Debug)]
pub(crate) struct NewDelivery {
    hook: WebhookId,
    event: i64,
    kind: &'static str,
    subject: String,
    data: String,
    lane: i64,
    place: i64,
    queue: i64,
}

impl NewDelivery {
    /// Deliveries of the event to each of these webhooks.
    pub(crate) fn to_each(hooks: &[WebhookId], event: QueuedEvent) -> Vec<NewDelivery> {
        let QueuedEvent { kind, subject, data, lane, place } = event;
        let (number, data) = (new_id(), data.to_string());
        let of = |hook: &WebhookId| NewDelivery {
            hook: *hook,
            event: number,
            kind: kind.name(),
            subject: subject.clone(),
            data: data.clone(),
            lane,
            place,
            queue: 1,
        };
        hooks.iter().map(of).collect()
    }

    /// A delivery that a user requested, with a single try.
    pub(super) fn test(hook: WebhookId, subject: String, data: &Json) -> NewDelivery {
        let event = new_id();
        let kind = TEST_EVENT;
        NewDelivery { hook, event, kind, subject, data: data.to_string(), lane: event, place: 0, queue: 2 }
    }

    pub(crate) fn hook(&self) -> WebhookId {
        self.hook
    }
}

/// Rows of deliveries; `now` is the time of the event.
pub(crate) fn insert_deliveries(deliveries: &[NewDelivery], now: i64) -> MultiRow {
    let row = |delivery: &NewDelivery| {
        [
            Value::from(new_id()),
            Value::from(delivery.hook.0),
            Value::from(delivery.event),
            Value::from(delivery.kind),
            Value::from(delivery.subject.as_str()),
            Value::from(now),
            Value::from(delivery.data.as_str()),
            Value::from(delivery.lane),
            Value::from(delivery.place),
            Value::from(delivery.queue),
            Value::from(0),
            Value::from(now),
            Value::from(0),
            Value::from(0),
        ]
    };
    let before = "INSERT INTO webhook_deliveries (id, hook, event, kind, subject, at, data, lane, place, queue, delivered, due_at, \
                  failures, tries) VALUES ";
    MultiRow::new(before, deliveries.iter().map(row).collect(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::of(kind.name()), Some(*kind));
        }
        assert_eq!(EventKind::of("package.Published"), None);
        assert_eq!(EventKind::of(TEST_EVENT), None);
    }

    #[test]
    fn a_list_of_repositories_leaves_out_others_and_not_what_is_about_none() {
        let wants = |repositories: Option<&[i64]>| WebhookFilter {
            hook: WebhookId(1),
            kinds: [EventKind::PackagePublished, EventKind::TokenCreated].into(),
            repositories: repositories.map(|ids| ids.iter().map(|id| RepositoryId(*id)).collect()),
        };
        let (some, all) = (wants(Some(&[7])), wants(None));
        assert!(some.wants(EventKind::PackagePublished, Some(RepositoryId(7))));
        assert!(!some.wants(EventKind::PackagePublished, Some(RepositoryId(8))));
        assert!(some.wants(EventKind::TokenCreated, None));
        assert!(!some.wants(EventKind::PackageDeleted, Some(RepositoryId(7))));
        assert!(all.wants(EventKind::PackagePublished, Some(RepositoryId(8))));
        assert!(!all.wants(EventKind::TokenRevoked, None));
    }

    #[test]
    fn lanes_are_the_same_in_every_process() {
        assert_eq!(lane_of("package", 7, "lib"), lane_of("package", 7, "lib"));
        assert_ne!(lane_of("package", 7, "lib"), lane_of("package", 8, "lib"));
        assert_ne!(lane_of("package", 7, "lib"), lane_of("token", 7, "lib"));
    }
}
