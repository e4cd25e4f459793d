//! Pausing of a webhook whose deliveries failed for too long, and the mail to its owner.

use packhouse_identity::Secret;
use packhouse_store::{ClaimedWebhook, StoreError, WebhookId};

use crate::App;
use crate::mail::Letter;

/// Returns the sealing purpose of a webhook's secret.
pub fn purpose(hook: WebhookId) -> String {
    format!("webhook {hook}")
}

/// Pauses a webhook. If mail is configured, sends a mail to its owner.
pub(super) async fn pause(app: &App, hook: &ClaimedWebhook) -> Result<(), StoreError> {
    let hours = app.config.webhooks.retry_for.as_secs() / 3600;
    let reason = match hours {
        0 => "It did not accept deliveries for as long as they are retried.".to_owned(),
        _ => format!("It did not accept deliveries for {hours} hours."),
    };
    if app.store.pause_webhook(hook.id, &reason).await? {
        tracing::warn!(hook = %hook.id, reason, "webhook paused");
        let letter = letter(hook, &reason);
        // This may take a while, but no request waits for it.
        app.mail.send(letter).await;
    }
    Ok(())
}

fn letter(hook: &ClaimedWebhook, reason: &str) -> Letter {
    let text = format!(
        "The webhook {id} at\n\n    {url}\n\nis paused. {reason} Packhouse keeps new events for \
         it.\n\nSee its responses at GET /v1/webhooks/{id}/deliveries, or under Organization in the portal. \
         Once it works again, resume it: PATCH /v1/webhooks/{id} with {{\"state\": \"active\"}}.\n",
        id = hook.id,
        url = hook.url,
    );
    let subject = "Packhouse: a webhook is paused".to_owned();
    Letter { to: hook.created_by.clone(), subject, text: Secret::new(text) }
}
