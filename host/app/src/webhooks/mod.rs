//! Webhooks. The server that claimed a webhook sends its waiting events. [`worker`] processes the
//! queue of one webhook, [`message`] creates the body, and [`receiver`] sends it.
//!
//! Each webhook has its own task, claim and connections. A slow, hostile or dead receiver therefore
//! does not affect other webhooks.

mod message;
mod pausing;
mod receiver;
mod upkeep;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use packhouse_store::WebhookId;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::App;
use crate::jobs::{self, Job, JobFuture, JobResult, Next};
pub use message::wire_id;
pub use pausing::purpose;
pub use receiver::{ReceiverError, Receivers};

/// Interval of the search for events that another process queued or did not finish sending.
const LOOK: Duration = Duration::from_secs(1);

/// Webhooks whose tasks run on this server, each with the notifier that wakes its task.
type AtWork = Arc<Mutex<HashMap<WebhookId, Arc<Notify>>>>;

/// Starts the jobs that send waiting events and keep the queues within their limits. After the
/// stop, the first of the returned tasks ends when no delivery is in flight any more.
pub fn start(app: &Arc<App>) -> [JoinHandle<()>; 2] {
    let tasks = TaskTracker::new();
    let dispatching = jobs::start(app, dispatch(app, tasks.clone()));
    let sending = tokio::spawn(async move {
        // Only the dispatcher starts deliveries.
        if let Err(error) = dispatching.await {
            tracing::error!(%error, "the dispatch of webhooks failed");
        }
        tasks.close();
        tasks.wait().await;
    });
    [sending, jobs::start(app, upkeep::job(app))]
}

/// Creates the job that starts a task for each webhook with waiting events. Events of this process
/// wake the job at once.
fn dispatch(app: &Arc<App>, tasks: TaskTracker) -> Job {
    let at_work = AtWork::default();
    let rung = Arc::new(Mutex::new(Vec::new()));
    let (of_app, found) = (Arc::clone(app), Arc::clone(&rung));
    let mut is_first = true;
    let run = move || -> JobFuture<JobResult> {
        let is_first = std::mem::take(&mut is_first);
        let (app, at_work, tasks) = (Arc::clone(&of_app), Arc::clone(&at_work), tasks.clone());
        let mut hooks = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move {
            // Before the first claim of this process, which the release would end.
            if is_first && let Err(error) = app.store.forget_webhook_claims().await {
                tracing::warn!(%error, "could not release webhook claims of a stopped server; they expire by \
                    themselves");
            }
            if hooks.is_empty() {
                hooks = app.store.webhooks_waiting().await?;
            }
            hooks.into_iter().for_each(|hook| begin(&app, hook, &at_work, &tasks));
            Ok(Next::AfterPeriod)
        })
    };
    let app = Arc::clone(app);
    Job::with_state("dispatch-webhooks", LOOK, run).woken_by(move || {
        let (app, rung) = (Arc::clone(&app), Arc::clone(&rung));
        Box::pin(async move {
            let hooks: Vec<WebhookId> = app.store.notified_webhooks().await;
            rung.lock().unwrap_or_else(PoisonError::into_inner).extend(hooks);
        })
    })
}

/// Wakes the task of a webhook, or starts one.
fn begin(app: &Arc<App>, hook: WebhookId, at_work: &AtWork, tasks: &TaskTracker) {
    let mut known = at_work.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(wake) = known.get(&hook) {
        wake.notify_one();
        return;
    }
    let wake = Arc::<Notify>::default();
    known.insert(hook, Arc::clone(&wake));
    drop(known);
    let (app, at_work) = (Arc::clone(app), Arc::clone(at_work));
    tasks.spawn(async move {
        worker::work(&app, hook, &wake).await;
        at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&hook);
        // If an event was queued just before this removal, the next search finds it.
    });
}
