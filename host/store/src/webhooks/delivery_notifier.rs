//! Wakes the webhook delivery of this process when new deliveries were written.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::ids::WebhookId;

/// Hooks with new deliveries since the last call of `notified`.
#[derive(Default)]
pub(crate) struct DeliveryNotifier {
    hooks: Mutex<BTreeSet<WebhookId>>,
    changed: Notify,
}

impl DeliveryNotifier {
    /// Announces that committed deliveries wait for these hooks.
    pub(crate) fn notify(&self, hooks: impl IntoIterator<Item = WebhookId>) {
        let mut pending = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.len();
        pending.extend(hooks);
        if pending.len() > before {
            self.changed.notify_one();
        }
    }

    /// Waits until hooks were announced since the last call, and returns them.
    pub(crate) async fn notified(&self) -> BTreeSet<WebhookId> {
        loop {
            let hooks = std::mem::take(&mut *self.hooks.lock().unwrap_or_else(PoisonError::into_inner));
            if !hooks.is_empty() {
                return hooks;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hooks_announced_before_a_wait_are_returned() {
        let delivery_notifier = DeliveryNotifier::default();
        delivery_notifier.notify([]);
        delivery_notifier.notify([WebhookId(2), WebhookId(1)]);
        delivery_notifier.notify([WebhookId(2)]);
        assert_eq!(delivery_notifier.notified().await, BTreeSet::from([WebhookId(1), WebhookId(2)]));
        delivery_notifier.notify([WebhookId(3)]);
        assert_eq!(delivery_notifier.notified().await, BTreeSet::from([WebhookId(3)]));
    }
}
