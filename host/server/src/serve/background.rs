//! Periodic maintenance of a running server, as background jobs.

use std::sync::Arc;
use std::time::Duration;

use packhouse_app::App;
use packhouse_app::jobs::{Job, JobResult, Next};
use packhouse_app::metrics::{self, Collection};

/// Interval of the maintenance of the metrics recorder.
const METRICS: Duration = Duration::from_secs(30);
/// Interval of the deletion of old audit events and activity.
const FORGET: Duration = Duration::from_hours(1);
/// Audit events to delete per transaction, so that publishes do not wait long.
const FORGET_AT_ONCE: u32 = 2000;
/// Pause between two such transactions.
const BETWEEN: Duration = Duration::from_millis(100);
/// Interval of the search for repositories that were deleted by the command line, or by another
/// server that has stopped since.
const REMOVE_DELETED: Duration = Duration::from_secs(10);
/// Interval of the removal of expired versions from the trash.
const EMPTY: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The maintenance jobs that the settings ask for.
pub(crate) fn jobs(app: &Arc<App>) -> Vec<Job> {
    let mut jobs = vec![
        Job::new(app, "delete-old-activity", FORGET, forget_activity),
        remove_deleted(app),
        Job::new(app, "empty-trash", EMPTY, empty_trash),
        Job::new(app, "maintain-metrics", METRICS, maintain_metrics).after_period(),
    ];
    if let Some(interval) = app.config.gc_interval {
        jobs.push(Job::new(app, "collect-garbage", interval, collect_garbage).after_period());
    }
    if app.config.audit_days.is_some() {
        jobs.push(Job::new(app, "delete-old-audit-events", FORGET, forget_audit));
    }
    jobs
}

async fn collect_garbage(app: Arc<App>) -> JobResult {
    let running = Collection::begin();
    let collected = app.store.collect_garbage().await;
    running.end(collected.is_ok());
    let collected = collected?;
    tracing::info!(?collected, "garbage collected");
    Ok(Next::AfterPeriod)
}

async fn forget_audit(app: Arc<App>) -> JobResult {
    let Some(days) = app.config.audit_days else { return Ok(Next::AfterPeriod) };
    let kept = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
    let before = packhouse_store::now_ms().saturating_sub(kept);
    let forgotten = app.store.forget_audit(before, FORGET_AT_ONCE).await?;
    let is_rest = forgotten >= u64::from(FORGET_AT_ONCE);
    Ok(if is_rest { Next::After(BETWEEN) } else { Next::AfterPeriod })
}

/// Deletes old activity and old records of fetches by tokens: all these records if the settings
/// retain none.
async fn forget_activity(app: Arc<App>) -> JobResult {
    app.store.forget_activity().await?;
    app.store.forget_fetches(app.config.fetch_days).await?;
    Ok(Next::AfterPeriod)
}

/// Removes the contents of deleted repositories. A removal in progress does not delay the stop.
fn remove_deleted(app: &Arc<App>) -> Job {
    let waiting = Arc::clone(app);
    let job = Job::new(app, "remove-deleted-repositories", REMOVE_DELETED, remove_contents);
    job.interruptible().woken_by(move || {
        let app = Arc::clone(&waiting);
        Box::pin(async move { app.store.until_deleted().await })
    })
}

async fn remove_contents(app: Arc<App>) -> JobResult {
    app.store.remove_deleted().await?;
    Ok(Next::AfterPeriod)
}

/// Permanently removes versions that have been in the trash long enough.
async fn empty_trash(app: Arc<App>) -> JobResult {
    let gone = app.store.empty_trash().await?;
    if gone > 0 {
        tracing::info!(gone, "expired versions removed from the trash");
    }
    Ok(Next::AfterPeriod)
}

async fn maintain_metrics(_: Arc<App>) -> JobResult {
    metrics::upkeep();
    Ok(Next::AfterPeriod)
}
