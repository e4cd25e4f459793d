//! Limits of webhook queues and deliveries.

use std::time::Duration;

use super::config_error::ConfigError;
use super::{SettingsReader, values};

/// Bounds for the queue of each webhook and for its deliveries.
#[derive(Clone, Copy, Debug)]
pub struct WebhookBounds {
    /// Time limit of one delivery, including its response.
    pub timeout: Duration,
    /// Time for which a failed delivery is retried.
    pub retry_for: Duration,
    /// Time for which the server keeps finished deliveries, and deliveries that wait for a paused
    /// webhook.
    pub keep: Duration,
    /// Maximum number of events that wait for one webhook.
    pub max_waiting: u64,
}

impl SettingsReader<'_> {
    pub(super) fn webhooks(&self) -> Result<WebhookBounds, ConfigError> {
        Ok(WebhookBounds {
            timeout: self.parse("webhooks.timeout_ms", values::some_millis)?,
            retry_for: self.millis("webhooks.retry_for_ms")?,
            keep: self.millis("webhooks.keep_ms")?,
            max_waiting: self.parse("webhooks.max_waiting", values::count)?,
        })
    }
}
