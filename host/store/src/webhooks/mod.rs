//! Webhooks as rows: who is told of which events, what is on its way to each, and how it went. What may be done is judged by the caller,
//! and what is sent is sent by it.
//!
//! An event is written in the transaction of what it tells, a row for each hook that wants it, and only there: where no hook
//! wants it, nothing is. A hook's deliveries are claimed as a whole by one server at a time, under a lease; those of one package go out
//! one after the other, in the order of the commits.

mod bell;
mod deliveries;
mod event;
mod hooks;
mod queue;
mod tags;
mod tell;
mod tries;
mod upkeep;

pub(crate) use bell::Bell;
pub use deliveries::{Delivery, DeliveryState, Try};
pub(crate) use event::{Event, NewDelivery, Wants, insert_deliveries, lane_of, read_wants};
pub use event::{EventKind, TEST_EVENT};
pub use hooks::{MAX_WEBHOOKS, NewWebhook, WebhookChange, WebhookRow};
#[cfg(test)]
pub(crate) use queue::queue_statements;
pub use queue::{DueDelivery, HookAtWork};
pub use tags::{TagRecord, Tags};
pub(crate) use tell::{Listeners, Telling, tell};
pub use tries::Reported;
pub use upkeep::QueueBounds;
