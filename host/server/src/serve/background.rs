//! What is done now and then while the server runs.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use packhouse_app::App;
use packhouse_app::metrics::{self, Collection};

/// How often the recorder of metrics is tended.
const TEND: Duration = Duration::from_secs(30);
/// How often the audit log is shortened.
const FORGET: Duration = Duration::from_hours(1);
/// How many events are forgotten in one transaction.
const FORGET_AT_ONCE: u32 = 2000;
/// How often it is looked for repositories that others deleted: another server that is gone, or the command line.
const LOOK_FOR_DELETED: Duration = Duration::from_secs(10);
/// How often the trash is emptied of what is over.
const EMPTY: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Collects garbage at the configured interval until the stop.
pub(crate) async fn collect(app: Arc<App>) {
    let Some(interval) = app.config.gc_interval else { return };
    while pause(interval, &app.stop).await {
        let running = Collection::begin();
        let collected = app.store.collect_garbage().await;
        running.end(collected.is_ok());
        match collected {
            Ok(collected) => tracing::info!(?collected, "garbage was collected"),
            Err(error) => tracing::warn!(%error, "garbage could not be collected; the next time will do"),
        }
    }
}

/// Forgets the audit log's oldest events until the stop, a bounded number at a time so that no publish waits long.
pub(crate) async fn forget_audit(app: Arc<App>) {
    let Some(days) = app.config.audit_days else { return };
    let kept = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
    loop {
        let before = packhouse_store::now_ms().saturating_sub(kept);
        let pause_for = match app.store.forget_audit(before, FORGET_AT_ONCE).await {
            Ok(forgotten) if forgotten >= u64::from(FORGET_AT_ONCE) => Duration::from_millis(100),
            Ok(_) => FORGET,
            Err(error) => {
                tracing::warn!(%error, "the audit log could not be shortened; the next time will do");
                FORGET
            }
        };
        if !pause(pause_for, &app.stop).await {
            return;
        }
    }
}

/// Forgets what happened on days long ago, and what tokens fetched then, until the stop; all of the latter where none is to be
/// remembered.
pub(crate) async fn forget_activity(app: Arc<App>) {
    loop {
        let forgotten = async {
            app.store.forget_activity().await?;
            app.store.forget_fetches(app.config.fetch_days).await
        };
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "what happened long ago could not be forgotten; the next time will do");
        }
        if !pause(FORGET, &app.stop).await {
            return;
        }
    }
}

/// Removes what deleted repositories held until the stop, which what is being removed does not hold up.
pub(crate) async fn remove_deleted(app: Arc<App>) {
    loop {
        let removed = tokio::select! {
            removed = app.store.remove_deleted() => removed,
            () = app.stop.cancelled() => return,
        };
        if let Err(error) = removed {
            tracing::warn!(%error, "what a deleted repository held could not be removed; the next time will do");
        }
        tokio::select! {
            () = app.store.until_deleted() => {}
            () = tokio::time::sleep(LOOK_FOR_DELETED) => {}
            () = app.stop.cancelled() => return,
        }
    }
}

/// Removes for good what is long enough in the trash, until the stop.
pub(crate) async fn empty_trash(app: Arc<App>) {
    loop {
        match app.store.empty_trash().await {
            Ok(0) => {}
            Ok(gone) => tracing::info!(gone, "deleted versions went for good"),
            Err(error) => tracing::warn!(%error, "the trash could not be emptied; the next time will do"),
        }
        if !pause(EMPTY, &app.stop).await {
            return;
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
