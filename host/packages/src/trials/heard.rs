//! What a call was told by others than the store: upstreams, and the keys that sign. It is handed to a candidate that asks the same;
//! nobody is asked for it again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use packhouse_runtime::{
    Fetch, IdentityService, JudgedReleases, PublicKey, Release, Reply, RepositoryView, ServiceError,
    ServiceFuture, SigningService, UpstreamService,
};
use packhouse_store::{Arriving, Digest, RepositoryId};

use crate::services::CallServices;

/// Replies that are noted; further ones are not, and a candidate that asks for them is not answered.
const MOST: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Heard {
    replies: Mutex<Vec<Arc<HeardReply>>>,
    keys: Mutex<Option<Vec<PublicKey>>>,
}

/// A reply, as far as the call asked for it.
struct HeardReply {
    proxy: RepositoryId,
    /// What was asked.
    fetch: Fetch,
    status: OnceLock<u16>,
    headers: OnceLock<Vec<(String, String)>>,
    address: OnceLock<String>,
    bytes: OnceLock<Arriving>,
}

impl Heard {
    /// The same reply, which notes what is asked of it.
    pub(crate) fn note(&self, proxy: &RepositoryView, fetch: Fetch, reply: Box<dyn Reply>) -> Box<dyn Reply> {
        let heard = Arc::new(HeardReply {
            proxy: proxy.id,
            fetch,
            status: OnceLock::new(),
            headers: OnceLock::new(),
            address: OnceLock::new(),
            bytes: OnceLock::new(),
        });
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if replies.len() < MOST {
            replies.push(Arc::clone(&heard));
        }
        Box::new(Noting { reply, heard })
    }

    /// Notes the keys that the call was told.
    pub(crate) fn note_keys(&self, keys: &[PublicKey]) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.to_vec());
    }

    /// The last reply to the same fetch: a call may have been begun again.
    fn find(&self, proxy: RepositoryId, fetch: &Fetch) -> Option<Arc<HeardReply>> {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |reply: &&Arc<HeardReply>| {
            let asked = &reply.fetch;
            reply.proxy == proxy
                && (&asked.method, &asked.target) == (&fetch.method, &fetch.target)
                && (&asked.headers, &asked.body) == (&fetch.headers, &fetch.body)
        };
        replies.iter().rev().find(is_it).cloned()
    }
}

/// A reply to the active component.
struct Noting {
    reply: Box<dyn Reply>,
    heard: Arc<HeardReply>,
}

impl Reply for Noting {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async {
            let status = self.reply.status().await?;
            let _ = self.heard.status.set(status);
            Ok(status)
        })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async {
            let headers = self.reply.headers().await?;
            let _ = self.heard.headers.set(headers.clone());
            Ok(headers)
        })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async {
            let address = self.reply.address().await?;
            let _ = self.heard.address.set(address.clone());
            Ok(address)
        })
    }

    fn lifetime(&self) -> Option<packhouse_runtime::ReplyLifetime> {
        self.reply.lifetime()
    }

    fn expect(&mut self, digest: Digest) {
        self.reply.expect(digest);
    }

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(async move {
            let arriving = self.reply.body().await?;
            let _ = self.heard.bytes.set(arriving.clone());
            Ok(arriving)
        })
    }
}

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

    fn judge_releases(
        &self,
        proxy: &RepositoryView,
        package: &str,
        releases: &[Release],
        now: u64,
    ) -> Result<JudgedReleases, ServiceError> {
        self.services.judge_releases(proxy, package, releases, now)
    }
}

impl IdentityService for HeardServices {}

impl SigningService for HeardServices {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        let keys = self.heard.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
