//! Webhooks: what waits for each is sent, by whichever server has claimed it. [`worker`] goes through the queue of one hook, [`message`]
//! makes what is sent, [`receiver`] sends it.
//!
//! Each hook has a task, a claim and connections of its own, so one that is slow, hostile or dead costs no other anything.

mod message;
mod receiver;
mod told;
mod upkeep;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use packhouse_store::WebhookId;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::App;
use crate::boxed;
pub use message::wire_id;
pub use receiver::{ReceiverError, Receivers};
pub use told::purpose;
pub use upkeep::tidy;

/// How often it is looked for what another process wrote, or left behind.
const LOOK: Duration = Duration::from_secs(1);

/// The hooks that this server is at, each with what wakes its task.
type AtWork = Arc<Mutex<HashMap<WebhookId, Arc<Notify>>>>;

/// Sends what waits for webhooks until the stop.
#[boxed]
pub async fn deliver(app: Arc<App>) {
    if let Err(error) = app.store.forget_webhook_claims().await {
        tracing::warn!(%error, "claims of a server that is gone last until they run out");
    }
    let (at_work, tasks) = (AtWork::default(), TaskTracker::new());
    while !app.stop.is_cancelled() {
        let found = tokio::select! {
            rung = app.store.webhooks_rung() => rung,
            () = tokio::time::sleep(LOOK) => look(&app).await,
            () = app.stop.cancelled() => break,
        };
        for hook in found {
            begin(&app, hook, &at_work, &tasks);
        }
    }
    tasks.close();
    tasks.wait().await;
}

async fn look(app: &App) -> Vec<WebhookId> {
    match app.store.webhooks_waiting().await {
        Ok(waiting) => waiting,
        Err(error) => {
            tracing::debug!(%error, "what waits for webhooks cannot be read; the next look will do");
            Vec::new()
        }
    }
}

/// Wakes the hook's task, or begins one.
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
        // What came in between is found by the next look.
    });
}
