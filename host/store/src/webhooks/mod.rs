//! Webhooks as rows: which events each one receives, its pending deliveries, and their outcomes.
//! The caller checks permissions and sends the requests.
//!
//! The transaction that causes an event writes it, as one row for each webhook that receives the
//! event. Without such a webhook, it writes nothing. One server at a time claims all deliveries of
//! a webhook for a limited time. Deliveries of one package are sent one after the other, in the
//! order of the commits.

mod deliveries;
mod delivery_notifier;
mod event;
mod hooks;
mod queue;
mod tags;
mod tries;
mod upkeep;
mod webhook_events;

pub use deliveries::{Delivery, DeliveryState, Try};
pub(crate) use delivery_notifier::DeliveryNotifier;
pub use event::{EventKind, TEST_EVENT};
pub(crate) use event::{NewDelivery, QueuedEvent, WebhookFilter, insert_deliveries, lane_of, read_filter};
pub use hooks::{MAX_WEBHOOKS, NewWebhook, WebhookChange, WebhookRow};
#[cfg(test)]
pub(crate) use queue::queue_statements;
pub use queue::{ClaimedWebhook, DueDelivery};
pub use tags::{TagRecord, Tags};
pub use tries::Reported;
pub use upkeep::QueueBounds;
pub(crate) use webhook_events::{Listeners, NewWebhookEvent, write_event};
