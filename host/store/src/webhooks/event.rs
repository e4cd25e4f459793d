//! Events: their names, who wants them, and the rows that carry one to each hook.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::db::{MultiRow, Row, Value};
use crate::error::StoreError;
use crate::ids::{RepositoryId, WebhookId, new_id};

/// What a delivery is called that somebody asked for to see whether it arrives.
pub const TEST_EVENT: &str = "webhook.test";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),* $(,)?) => {
        /// What a hook can be told of.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            /// As it stands on the wire.
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
    /// A version was yanked, deprecated, withdrawn, or is good again.
    PackageStateChanged = "package.state_changed",
    /// A tag names another version, or none any more.
    TagMoved = "tag.moved",
    /// There is a new repository.
    RepositoryCreated = "repository.created",
    /// A repository was deleted with all that it held.
    RepositoryDeleted = "repository.deleted",
    /// There is a new token or service key.
    TokenCreated = "token.created",
    /// A token or service key was revoked.
    TokenRevoked = "token.revoked",
    /// Somebody was invited.
    MemberInvited = "member.invited",
    /// What somebody asked for was held back by a policy.
    PolicyDenied = "policy.denied",
    /// A format runs another component.
    PluginActivated = "plugin.activated",
    /// Stored bytes are not what was stored.
    BlobCorrupt = "blob.corrupt",
}

impl EventKind {
    /// The one of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<EventKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// To what, for people and filters.
    pub(crate) subject: String,
    /// An object.
    pub(crate) data: Json,
    /// What it keeps its order with: see [`lane_of`].
    pub(crate) lane: i64,
    /// Its place there.
    pub(crate) place: i64,
}

/// What goes out one after the other, as a number: two that are equal by chance wait for each other and lose nothing.
pub(crate) fn lane_of(scope: &str, id: i64, name: &str) -> i64 {
    let hash = Sha256::digest(format!("{scope} {id} {name}"));
    hash.first_chunk::<8>().map_or(0, |first| i64::from_be_bytes(*first))
}

/// What a hook wants to be told.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    pub(crate) hook: WebhookId,
    kinds: BTreeSet<EventKind>,
    /// None: all.
    repositories: Option<BTreeSet<RepositoryId>>,
}

impl Wants {
    /// Whether it wants an event of this kind, about this repository or about none.
    pub(crate) fn wants(&self, kind: EventKind, repository: Option<RepositoryId>) -> bool {
        let reached = match (&self.repositories, repository) {
            (Some(only), Some(repository)) => only.contains(&repository),
            _ => true,
        };
        reached && self.kinds.contains(&kind)
    }
}

/// From a row's `hook`, `events` and `repositories`.
pub(crate) fn read_wants(row: &Row) -> Result<Wants, StoreError> {
    let mut columns = row.columns();
    let hook = WebhookId(columns.int("hook")?);
    let kinds = kinds_of(hook, &columns.text("events")?)?;
    let repositories = repositories_of(hook, &columns.text("repositories")?)?;
    Ok(Wants {
        hook,
        kinds: kinds.into_iter().collect(),
        repositories: repositories.map(BTreeSet::from_iter),
    })
}

/// The names of a JSON list. One that only a newer program knows is left out.
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

/// An event on its way to one hook.
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
    /// The event for each of these hooks.
    pub(crate) fn to_each(hooks: &[WebhookId], event: Event) -> Vec<NewDelivery> {
        let Event { kind, subject, data, lane, place } = event;
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

    /// What somebody asked for, for one try.
    pub(super) fn test(hook: WebhookId, subject: String, data: &Json) -> NewDelivery {
        let event = new_id();
        let kind = TEST_EVENT;
        NewDelivery { hook, event, kind, subject, data: data.to_string(), lane: event, place: 0, queue: 2 }
    }

    /// To which hook.
    pub(crate) fn hook(&self) -> WebhookId {
        self.hook
    }
}

/// The rows of deliveries; `now` is when it happened.
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
        let wants = |repositories: Option<&[i64]>| Wants {
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
