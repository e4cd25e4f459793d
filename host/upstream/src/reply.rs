//! The upstream's response to a plugin's request, as the plugin accesses it.

use std::sync::Arc;

use packhouse_names::ReleaseVerdict;
use packhouse_runtime::{CacheUse, Reply, ReplyLifetime, ServiceError, ServiceFuture};
use packhouse_store::{Arriving, Blob, Digest, StoreError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{FetchTask, Lifetime, ProxyAnswer};
use super::body;
use super::counts::{CacheOutcome, OutcomeCounts};
use super::error::UpstreamError;
use super::fetched::ResponseContent;
use super::single_flight;

type AnswerSlot = Option<Result<Arc<ProxyAnswer>, UpstreamError>>;

/// The reply for a plugin. Dropping the reply stops waiting; a fetch that other calls wait for
/// continues.
pub(crate) struct ProxyReply {
    task: Arc<FetchTask>,
    answered: watch::Receiver<AnswerSlot>,
    /// Digests that the plugin added after it sent the request.
    late: Vec<Digest>,
    _running: AbortOnDropHandle<()>,
}

impl ProxyReply {
    /// Starts the task and returns immediately.
    pub(crate) fn start(task: FetchTask, counts: Arc<OutcomeCounts>) -> ProxyReply {
        let (tell, answered) = watch::channel(None);
        let task = Arc::new(task);
        let runs = Arc::clone(&task);
        let running = tokio::spawn(async move {
            let answer = runs.answer().await;
            match &answer {
                Ok(answer) => {
                    counts.count(answer.outcome);
                    runs.session.note_answer(
                        &runs.plan,
                        &answer.fetched,
                        answer.outcome == CacheOutcome::Miss,
                    );
                }
                // Not a failure: the host restarts the call when the call gets a permit to wait.
                Err(UpstreamError::TooManyWaiting) => {}
                Err(error) => {
                    counts.count(CacheOutcome::Error);
                    runs.session.note_failure(&runs.plan, error);
                    let (repository, path) = (&*runs.plan.repository_name, runs.plan.path());
                    tracing::warn!(repository, path, %error, "upstream request failed");
                }
            }
            tell.send_replace(Some(answer.map(Arc::new)));
        });
        ProxyReply { task, answered, late: Vec::new(), _running: AbortOnDropHandle::new(running) }
    }

    /// Waits for the answer. Errors contain the requested path.
    async fn answer(&self) -> Result<Arc<ProxyAnswer>, ServiceError> {
        let lost = || UpstreamError::Unavailable("the request to the upstream was cancelled".to_owned());
        let mut answered = self.answered.clone();
        let answer = match answered.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or_else(|| Err(lost())),
            Err(_) => Err(lost()),
        };
        answer.map_err(|error| error.at(self.task.plan.public_path()))
    }

    /// Returns the blob if it has the late digests. Otherwise removes it from the cache.
    async fn verified(&self, blob: Blob) -> Result<Blob, ServiceError> {
        match body::verify(&blob, &self.late).await {
            Ok(()) => Ok(blob),
            Err(StoreError::BrokenOff(why)) => {
                let plan = &self.task.plan;
                self.task.context().store.uncache(plan.repository, &plan.name).await?;
                Err(UpstreamError::Unavailable(why).at(plan.public_path()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Reply for ProxyReply {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async move { Ok(self.answer().await?.fetched.status) })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async move { Ok(self.answer().await?.fetched.headers.to_vec()) })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async move { Ok(self.answer().await?.fetched.address.clone()) })
    }

    fn withholds(&self, file: usize) -> ServiceFuture<'_, bool> {
        Box::pin(async move {
            let Some(named) = self.task.plan.judged_as.get(file) else { return Ok(false) };
            let (_, judged) = self.task.release(named).await?;
            Ok(judged.verdict == ReleaseVerdict::Withheld)
        })
    }

    fn lifetime(&self) -> Option<ReplyLifetime> {
        let answered = self.answered.borrow();
        let Some(Ok(answer)) = &*answered else { return None };
        let Lifetime { until, made_of, name } = answer.lifetime.clone()?;
        let stale = answer.outcome == CacheOutcome::Stale;
        let cache_use = CacheUse { repository: self.task.plan.repository, name, stale };
        Some(ReplyLifetime { until, made_of, cache_use })
    }

    fn stale(&self) -> Option<CacheUse> {
        let answered = self.answered.borrow();
        let Some(Ok(answer)) = &*answered else { return None };
        let stale = answer.outcome == CacheOutcome::Stale;
        stale.then_some(CacheUse { repository: self.task.plan.repository, name: None, stale })
    }

    fn expect(&mut self, digest: Digest) {
        self.late.push(digest);
    }

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move {
            let answer = self.answer().await?;
            let content = match &answer.fetched.content {
                ResponseContent::Complete(blob) => {
                    let blob = blob.clone().unwrap_or_else(|| Blob::from_bytes(bytes::Bytes::new()));
                    let is_expected = answer.fetched.status == 200;
                    return Ok(Arriving::whole(if is_expected { self.verified(blob).await? } else { blob }));
                }
                ResponseContent::Body(content) => content,
            };
            let waiter = answer.waiter.as_ref();
            let in_time = waiter.is_none_or(|waiter| self.late.iter().all(|digest| waiter.expect(digest)));
            if let Some(waiter) = waiter {
                waiter.demand_body();
            }
            let arriving = single_flight::arriving(content.clone()).await;
            let arriving = arriving.map_err(|error| error.at(self.task.plan.public_path()))?;
            if in_time {
                return Ok(arriving);
            }
            let blob = arriving.wait().await?;
            Ok(Arriving::whole(self.verified(blob).await?))
        })
    }
}
