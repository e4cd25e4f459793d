//! Bounds of events and of what hooks are sent.

use std::time::Duration;

use super::mistake::Mistake;
use super::{Reader, values};

/// Bounds of what webhooks are told.
#[derive(Clone, Copy, Debug)]
pub struct WebhookBounds {
    /// Time for one send, with its answer.
    pub timeout: Duration,
    /// How long something is sent again that is not taken.
    pub retry_for: Duration,
    /// How long it is kept what was sent, and what waits for a hook that is paused.
    pub keep: Duration,
    /// Events that wait for one hook.
    pub max_waiting: u64,
}

impl Reader<'_> {
    pub(super) fn webhooks(&self) -> Result<WebhookBounds, Mistake> {
        Ok(WebhookBounds {
            timeout: self.parse("webhooks.timeout_ms", values::some_millis)?,
            retry_for: self.millis("webhooks.retry_for_ms")?,
            keep: self.millis("webhooks.keep_ms")?,
            max_waiting: self.parse("webhooks.max_waiting", values::count)?,
        })
    }
}
