//! What is done now and then while the server runs.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::metrics;

/// How often the recorder of metrics is tended.
const TEND: Duration = Duration::from_secs(30);

/// Collects garbage at the configured interval until the stop.
pub(crate) async fn collect(app: Arc<App>) {
    let Some(interval) = app.config.gc_interval else { return };
    while pause(interval, &app.stop).await {
        match app.store.collect_garbage().await {
            Ok(collected) => tracing::info!(?collected, "garbage was collected"),
            Err(error) => tracing::warn!(%error, "garbage could not be collected; the next time will do"),
        }
    }
}

/// Tends the recorder of metrics until the stop.
pub(crate) async fn tend_metrics(stop: CancellationToken) {
    while pause(TEND, &stop).await {
        metrics::upkeep();
    }
}

/// Waits; false when it is time to stop.
async fn pause(interval: Duration, stop: &CancellationToken) -> bool {
    tokio::time::timeout(interval, stop.cancelled()).await.is_err()
}
