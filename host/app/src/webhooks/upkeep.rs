//! What keeps the queues of hooks within their bounds.

use std::sync::Arc;
use std::time::Duration;

use packhouse_store::{QueueBounds, StoreError};

use crate::App;
use crate::boxed;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(30);
/// Between two pieces of what goes.
const BETWEEN: Duration = Duration::from_millis(100);

/// Removes what is old, and finds out whose queue is full, until the stop.
#[boxed]
pub async fn tidy(app: Arc<App>) {
    loop {
        let pause = match once(&app).await {
            Ok(true) => BETWEEN,
            Ok(false) => EVERY,
            Err(error) => {
                tracing::warn!(%error, "what webhooks were told could not be shortened; the next time will do");
                EVERY
            }
        };
        if tokio::time::timeout(pause, app.stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn once(app: &App) -> Result<bool, StoreError> {
    let settings = &app.config.webhooks;
    let kept = i64::try_from(settings.keep.as_millis()).unwrap_or(i64::MAX);
    let bounds = QueueBounds { before: app.store.now_ms().saturating_sub(kept), most: settings.max_waiting };
    for (hook, is_full) in app.store.judge_queues(bounds).await? {
        if is_full {
            tracing::warn!(%hook, most = bounds.most, "the queue of a webhook is full: what happens now it is not told");
        } else {
            tracing::info!(%hook, "the queue of a webhook has room again");
        }
    }
    app.store.shorten_deliveries(bounds).await
}
