//! What waits for a shadow, and the thread that compares. There is one, at low priority, and one call of it runs at a time: what comes faster
//! than it can compare is dropped, and counted.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use super::job::Job;
use crate::repository_views::RepositoryViews;
use packhouse_app::App;

/// Requests that wait at most. Each holds its answer, of which few are larger than some KiB.
const WAITING: usize = 64;
/// The lowest priority that there is: it gets what clients leave.
const NICE: i32 = 19;

/// See the module.
pub(crate) struct Shadows {
    sender: mpsc::Sender<Job>,
    receiver: Mutex<Option<mpsc::Receiver<Job>>>,
    /// Repositories as candidates see them, too.
    pub(crate) views: RepositoryViews,
}

impl Default for Shadows {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver: Mutex::new(Some(receiver)), views: RepositoryViews::default() }
    }
}

impl Shadows {
    /// Puts a request into the queue, or drops it where that is full.
    pub(super) fn put(self: &Arc<Self>, job: Job) {
        if let Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) =
            self.sender.try_send(job)
        {
            job.trial.count(|counts| counts.dropped += 1);
        }
    }

    /// Starts the thread, which ends with the program's stop. What it waits for is driven by this runtime.
    pub(crate) fn start(self: &Arc<Self>, app: &Arc<App>) {
        let Some(receiver) = self.receiver.try_lock().ok().and_then(|mut receiver| receiver.take()) else {
            return;
        };
        let (stop, handle) = (app.stop.clone(), tokio::runtime::Handle::current());
        let work = async move { stop.run_until_cancelled(compare(receiver)).await };
        let run = move || {
            // Of this thread alone, as Linux has it.
            #[cfg(target_os = "linux")]
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                tracing::debug!(%error, "shadows are compared at the priority of all else");
            }
            handle.block_on(work);
        };
        if let Err(error) = std::thread::Builder::new().name("shadow".to_owned()).spawn(run) {
            tracing::error!(%error, "the thread of shadows cannot be started; nothing is compared");
        }
    }
}

async fn compare(mut receiver: mpsc::Receiver<Job>) {
    while let Some(job) = receiver.recv().await {
        // A trial that ended while this waited counts no more.
        let current = job.app.runtime.current();
        if current.trials().iter().any(|trial| trial.id == job.trial.id) {
            Box::pin(job.run()).await;
        }
    }
}
