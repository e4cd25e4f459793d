//! Job that keeps the webhook queues within their limits.

use std::sync::Arc;
use std::time::Duration;

use packhouse_store::{QueueBounds, StoreError};

use crate::App;
use crate::jobs::{Job, Next};

const EVERY: Duration = Duration::from_secs(30);
/// Pause between two batches of deletions.
const BETWEEN: Duration = Duration::from_millis(100);

/// Creates the job that deletes old deliveries and determines which queues are full.
pub(super) fn job(app: &Arc<App>) -> Job {
    Job::new(app, "delete-old-webhook-deliveries", EVERY, |app| async move {
        let is_rest = once(&app).await?;
        Ok(if is_rest { Next::After(BETWEEN) } else { Next::AfterPeriod })
    })
}

async fn once(app: &App) -> Result<bool, StoreError> {
    let settings = &app.config.webhooks;
    let keep_ms = i64::try_from(settings.keep.as_millis()).unwrap_or(i64::MAX);
    let bounds =
        QueueBounds { before: app.store.now_ms().saturating_sub(keep_ms), most: settings.max_waiting };
    for (hook, is_full) in app.store.judge_queues(bounds).await? {
        if is_full {
            tracing::warn!(%hook, most = bounds.most, "webhook queue full: new events are dropped");
        } else {
            tracing::info!(%hook, "webhook queue has room again");
        }
    }
    app.store.shorten_deliveries(bounds).await
}
