//! An upstream's reply as its plugin holds it.

use std::sync::Arc;

use packhouse_runtime::{Reply, ServiceError, ServiceFuture};
use packhouse_store::{Arriving, Blob, Digest, StoreError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Asker, Taken};
use super::body;
use super::flight::{self, Content};
use super::site::{Counts, Outcome};
use super::trouble::Trouble;

type Answered = Option<Result<Arc<Taken>, Trouble>>;

/// See the module. Dropped, it no longer waits; a request that others wait for goes on.
pub(crate) struct ProxyReply {
    asker: Arc<Asker>,
    answered: watch::Receiver<Answered>,
    late: Vec<Digest>,
    _task: AbortOnDropHandle<()>,
}

impl ProxyReply {
    /// Asks, and returns at once.
    pub(crate) fn start(asker: Asker, counts: Arc<Counts>) -> ProxyReply {
        let (tell, answered) = watch::channel(None);
        let asker = Arc::new(asker);
        let asking = Arc::clone(&asker);
        let task = tokio::spawn(async move {
            let answer = asking.answer().await;
            match &answer {
                Ok(taken) => counts.count(taken.outcome),
                // It is asked again when there is room.
                Err(Trouble::Crowded) => {}
                Err(trouble) => {
                    counts.count(Outcome::Error);
                    asking.errand.failed();
                    tracing::warn!(target = asking.plan.target, %trouble, "an upstream gave no answer");
                }
            }
            tell.send_replace(Some(answer.map(Arc::new)));
        });
        ProxyReply { asker, answered, late: Vec::new(), _task: AbortOnDropHandle::new(task) }
    }

    async fn taken(&self) -> Result<Arc<Taken>, Trouble> {
        let mut answered = self.answered.clone();
        read(&mut answered).await
    }

    /// Whether the bytes are what was expected after they were asked for. What is not will not be found again.
    async fn checked(&self, blob: Blob) -> Result<Blob, ServiceError> {
        match body::verify(&blob, &self.late).await {
            Ok(()) => Ok(blob),
            Err(StoreError::BrokenOff(why)) => {
                let plan = &self.asker.plan;
                self.asker.upstreams.store.uncache(plan.repository, &plan.name).await?;
                Err(ServiceError::Unavailable(why))
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn read(answered: &mut watch::Receiver<Answered>) -> Result<Arc<Taken>, Trouble> {
    let lost = || Trouble::Unavailable("the question to the upstream was given up".to_owned());
    let answered = answered.wait_for(Option::is_some).await.map_err(|_| lost())?.clone();
    answered.unwrap_or_else(|| Err(lost()))
}

impl Reply for ProxyReply {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async move { Ok(self.taken().await?.landed.status) })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async move { Ok(self.taken().await?.landed.headers.to_vec()) })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async move { Ok(self.taken().await?.landed.address.clone()) })
    }

    fn expect(&mut self, digest: Digest) {
        self.late.push(digest);
    }

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move {
            let taken = self.taken().await?;
            let content = match (&taken.landed.content, &taken.passenger) {
                (Content::Whole(blob), _) => {
                    let blob = blob.clone().unwrap_or_else(|| Blob::from_bytes(bytes::Bytes::new()));
                    let expected = taken.landed.status == 200;
                    return Ok(Arriving::whole(if expected { self.checked(blob).await? } else { blob }));
                }
                (Content::Body(content), passenger) => (content, passenger),
            };
            let (content, passenger) = content;
            let in_time =
                passenger.as_ref().is_none_or(|one| self.late.iter().all(|digest| one.expect(digest)));
            if let Some(passenger) = passenger {
                passenger.want();
            }
            let arriving = flight::arriving(content.clone()).await?;
            if in_time {
                return Ok(arriving);
            }
            let blob = arriving.wait().await?;
            Ok(Arriving::whole(self.checked(blob).await?))
        })
    }
}
