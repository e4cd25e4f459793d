//! The services of a call aside: what the call that was answered was told is told once more; nobody is asked for it again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use packhouse_runtime::{
    AdvisoryService, Fetch, IdentityService, JudgedReleases, PublicKey, Release, Reply, RepositoryView,
    ServiceError, ServiceFuture, SigningService, UpstreamService,
};
use packhouse_store::{Arriving, Digest};

use crate::heard::{Heard, HeardReply};
use crate::services::CallServices;

/// The services of a call aside.
pub(super) struct HeardServices {
    /// Those of the call that was answered, for what is told from the store or by rule.
    services: Arc<CallServices>,
    heard: Arc<Heard>,
    unanswered: Arc<AtomicBool>,
}

impl HeardServices {
    pub(super) fn new(services: &Arc<CallServices>, heard: &Arc<Heard>) -> Arc<HeardServices> {
        let (services, heard) = (Arc::clone(services), Arc::clone(heard));
        Arc::new(HeardServices { services, heard, unanswered: Arc::default() })
    }

    /// Whether it asked for what the other call was not told.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }
}

fn unanswered(mark: &AtomicBool) -> ServiceError {
    mark.store(true, Ordering::Relaxed);
    ServiceError::Unavailable("the call that was answered did not ask for this".to_owned())
}

impl UpstreamService for HeardServices {
    fn fetch(&self, proxy: &RepositoryView, fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        let reply = self.heard.find(proxy.id, &fetch).ok_or_else(|| unanswered(&self.unanswered))?;
        Ok(Box::new(Retold { reply, unanswered: Arc::clone(&self.unanswered) }))
    }

    fn withheld<'a>(
        &'a self,
        repository: &'a RepositoryView,
        names: Vec<String>,
    ) -> ServiceFuture<'a, Vec<String>> {
        self.services.withheld(repository, names)
    }

    fn judge_releases<'a>(
        &'a self,
        proxy: &'a RepositoryView,
        package: String,
        releases: Vec<Release>,
        now: u64,
    ) -> ServiceFuture<'a, JudgedReleases> {
        Box::pin(async move { self.services.judge_aside(proxy, &package, releases, now).await })
    }
}

impl IdentityService for HeardServices {}

impl packhouse_runtime::PolicyService for HeardServices {}
impl AdvisoryService for HeardServices {
    fn find<'a>(&'a self, of: &'a RepositoryView, names: Vec<String>) -> ServiceFuture<'a, String> {
        self.services.find(of, names)
    }
}

impl SigningService for HeardServices {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        let keys = self.heard.keys();
        Box::pin(async move { keys.ok_or_else(|| unanswered(&self.unanswered)) })
    }
}

/// A reply told once more.
struct Retold {
    reply: Arc<HeardReply>,
    unanswered: Arc<AtomicBool>,
}

impl Retold {
    fn told<'a, T: Clone + Send + Sync + 'a>(&'a self, told: &'a OnceLock<T>) -> ServiceFuture<'a, T> {
        Box::pin(async move { told.get().cloned().ok_or_else(|| unanswered(&self.unanswered)) })
    }
}

impl Reply for Retold {
    fn status(&self) -> ServiceFuture<'_, u16> {
        self.told(&self.reply.status)
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        self.told(&self.reply.headers)
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        self.told(&self.reply.address)
    }

    fn expect(&mut self, _digest: Digest) {}

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move { self.reply.bytes.get().cloned().ok_or_else(|| unanswered(&self.unanswered)) })
    }
}
