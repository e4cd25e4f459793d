//! Pausing a hook that was told in vain for too long, and telling its owner.

use packhouse_identity::Secret;
use packhouse_store::{HookAtWork, StoreError, WebhookId};

use crate::App;
use crate::mail::Letter;

/// For what a hook's secret is sealed.
pub fn purpose(hook: WebhookId) -> String {
    format!("webhook {hook}")
}

/// Pauses a hook. Its owner gets a mail, where mails are sent.
pub(super) async fn pause(app: &App, hook: &HookAtWork) -> Result<(), StoreError> {
    let hours = app.config.webhooks.retry_for.as_secs() / 3600;
    let because = match hours {
        0 => "It did not take what it was told for as long as that is tried.".to_owned(),
        _ => format!("It did not take what it was told for {hours} hours."),
    };
    if app.store.pause_webhook(hook.id, &because).await? {
        tracing::warn!(hook = %hook.id, because, "a webhook is paused");
        let letter = letter(hook, &because);
        // Nobody waits for the mail server.
        app.mail.send(letter).await;
    }
    Ok(())
}

fn letter(hook: &HookAtWork, because: &str) -> Letter {
    let text = format!(
        "The webhook {id} at\n\n    {url}\n\nis paused. {because} What happens meanwhile is kept for it.\n\n\
         See what it answered at GET /v1/webhooks/{id}/deliveries, or under Organization in the portal, mend it, and let it be told \
         again: PATCH /v1/webhooks/{id} with {{\"state\": \"active\"}}.\n",
        id = hook.id,
        url = hook.url,
    );
    let subject = "A webhook of Packhouse is paused".to_owned();
    Letter { to: hook.created_by.clone(), subject, text: Secret::new(text) }
}
