//! What wakes whoever delivers, in this process: the hooks that something was just written for.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::ids::WebhookId;

/// Hooks that were written for since somebody listened last.
#[derive(Default)]
pub(crate) struct Bell {
    hooks: Mutex<BTreeSet<WebhookId>>,
    rung: Notify,
}

impl Bell {
    /// Something durable waits for these.
    pub(crate) fn ring(&self, hooks: impl IntoIterator<Item = WebhookId>) {
        let mut rung = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = rung.len();
        rung.extend(hooks);
        if rung.len() > before {
            self.rung.notify_one();
        }
    }

    /// Returns the hooks that it was rung for since the last call, once there are some.
    pub(crate) async fn heard(&self) -> BTreeSet<WebhookId> {
        loop {
            let hooks = std::mem::take(&mut *self.hooks.lock().unwrap_or_else(PoisonError::into_inner));
            if !hooks.is_empty() {
                return hooks;
            }
            self.rung.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_rang_before_somebody_listened_is_heard() {
        let bell = Bell::default();
        bell.ring([]);
        bell.ring([WebhookId(2), WebhookId(1)]);
        bell.ring([WebhookId(2)]);
        assert_eq!(bell.heard().await, BTreeSet::from([WebhookId(1), WebhookId(2)]));
        bell.ring([WebhookId(3)]);
        assert_eq!(bell.heard().await, BTreeSet::from([WebhookId(3)]));
    }
}
