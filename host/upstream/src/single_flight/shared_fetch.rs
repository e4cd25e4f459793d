//! A fetch as those see it who wait for it. All of them get its head, and each reads its bytes at its own pace.
//!
//! Nothing of a body is read before somebody demands it, and by then each has said which digests it expects. The response is kept
//! when it is complete and right. If all waiters have gone before they demanded the body, the request is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use packhouse_store::{Arriving, Digest};
use tokio::sync::{mpsc, watch};

use super::super::error::UpstreamError;
use super::super::fetched::FetchedResponse;
use super::super::sync::lock;
use super::super::unverified::UnverifiedResponse;

/// The head once it is here, or why there is none.
type Head = Option<Result<FetchedResponse, UpstreamError>>;

/// See the module.
pub(crate) struct SharedFetch {
    head: watch::Sender<Head>,
    waiters: mpsc::WeakSender<()>,
    /// Holds the channel open once the body is demanded: later calls join in, though nobody waits at the moment.
    demanded: Mutex<Option<mpsc::Sender<()>>>,
    expected: Mutex<Expected>,
    /// It brought nothing that a later call could use.
    failed: AtomicBool,
    /// The response, where a plugin must read it before it is cached.
    pub unverified: Arc<UnverifiedResponse>,
    started: Instant,
}

#[derive(Default)]
struct Expected {
    digests: Vec<Digest>,
    /// Whether the bytes have been compared with them.
    compared: bool,
}

/// One call that waits. The request is cancelled with the last.
#[derive(Clone)]
pub(crate) struct Waiter {
    pub shared: Arc<SharedFetch>,
    alive: mpsc::Sender<()>,
}

/// Tells the fetcher whether anybody demands the body.
pub(crate) struct BodyDemand(mpsc::Receiver<()>);

impl SharedFetch {
    /// A new one with its first waiter.
    pub(crate) fn start() -> (Waiter, BodyDemand) {
        let (alive, demand) = mpsc::channel(1);
        let shared = Arc::new(SharedFetch {
            head: watch::Sender::default(),
            waiters: alive.downgrade(),
            demanded: Mutex::default(),
            expected: Mutex::default(),
            failed: AtomicBool::new(false),
            unverified: Arc::default(),
            started: Instant::now(),
        });
        (Waiter { shared, alive }, BodyDemand(demand))
    }

    /// One more waiter. None when the fetch has been cancelled or has failed, or what it brought could not be read: whoever comes after a
    /// failure was told asks anew.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Waiter> {
        if self.failed.load(Ordering::Acquire) || self.unverified.is_rejected() {
            return None;
        }
        let alive = self.waiters.upgrade()?;
        Some(Waiter { shared: Arc::clone(self), alive })
    }

    /// Hands the head, or why there is none, to all who wait.
    pub(crate) fn publish_head(&self, head: Result<FetchedResponse, UpstreamError>) {
        if head.as_ref().map_or(true, |fetched| fetched.status >= 400) {
            self.note_failed();
        }
        self.head.send_replace(Some(head));
    }

    /// Nobody joins it any more. To be called before anybody is told of the failure.
    pub(crate) fn note_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// The time since the start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// All digests that are expected so far.
    pub(crate) fn expected(&self) -> Vec<Digest> {
        lock(&self.expected).digests.clone()
    }

    /// The same, for the comparison. Whoever expects another digest later must compare it itself.
    pub(crate) fn expected_for_comparison(&self) -> Vec<Digest> {
        let mut expected = lock(&self.expected);
        expected.compared = true;
        expected.digests.clone()
    }
}

impl Waiter {
    /// Expects this digest of the body too. False when the bytes have been compared already.
    pub(crate) fn expect(&self, digest: &Digest) -> bool {
        let mut expected = lock(&self.shared.expected);
        if !expected.digests.contains(digest) {
            if expected.compared {
                return false;
            }
            expected.digests.push(digest.clone());
        }
        true
    }

    /// Waits for the head.
    pub(crate) async fn head(&self) -> Result<FetchedResponse, UpstreamError> {
        let mut head = self.shared.head.subscribe();
        let fetched = head.wait_for(Option::is_some).await.map_err(|_| cancelled())?.clone();
        fetched.unwrap_or_else(|| Err(cancelled()))
    }

    /// Demands the body: it is received even if all waiters go away.
    pub(crate) fn demand_body(&self) {
        // One message in the channel is enough.
        let _ = self.alive.try_send(());
        *lock(&self.shared.demanded) = Some(self.alive.clone());
    }
}

impl BodyDemand {
    /// Waits until somebody demands the body. False when no waiter is left.
    pub(crate) async fn wait(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Waits until the bytes begin to arrive.
pub(crate) async fn arriving(mut body: watch::Receiver<Option<Arriving>>) -> Result<Arriving, UpstreamError> {
    let arriving = body.wait_for(Option::is_some).await.map_err(|_| cancelled())?.clone();
    arriving.ok_or_else(cancelled)
}

fn cancelled() -> UpstreamError {
    UpstreamError::Unavailable("the request to the upstream was given up".to_owned())
}

#[cfg(test)]
mod tests {
    use packhouse_store::RepositoryId;

    use super::super::super::cache_key::CacheKey;
    use super::super::super::unverified::UnverifiedResponses;
    use super::*;

    #[tokio::test]
    async fn a_fetch_is_cancelled_with_its_last_waiter() {
        let (first, mut demand) = SharedFetch::start();
        let second = first.shared.join().unwrap();
        let shared = Arc::clone(&first.shared);
        drop((first, second));
        assert!(!demand.wait().await);
        assert!(shared.join().is_none());
    }

    #[tokio::test]
    async fn who_comes_after_a_failure_does_not_share_it() {
        for head in [Err(cancelled()), Ok(FetchedResponse::bare(404, "http://upstream"))] {
            let (first, _demand) = SharedFetch::start();
            let second = first.shared.join().unwrap();
            first.shared.publish_head(head);
            assert!(first.shared.join().is_none());
            assert_eq!(first.head().await.is_err(), second.head().await.is_err(), "both wait for it");
        }
        let (first, _demand) = SharedFetch::start();
        first.shared.publish_head(Ok(FetchedResponse::bare(200, "http://upstream")));
        assert!(first.shared.join().is_some());
        let key = CacheKey { repository: RepositoryId(1), name: [0; 32] };
        UnverifiedResponses::default().reject(key, &first.shared.unverified, 0).await;
        assert!(first.shared.join().is_none(), "it could not be read, and has not ended yet");
        first.shared.note_failed();
        assert!(first.shared.join().is_none());
    }

    #[tokio::test]
    async fn a_demand_outlasts_its_waiter() {
        let (first, mut demand) = SharedFetch::start();
        let shared = Arc::clone(&first.shared);
        first.demand_body();
        first.demand_body();
        drop(first);
        assert!(demand.wait().await);
        assert!(shared.join().is_some(), "and whoever comes later need not ask again");
    }

    #[tokio::test]
    async fn what_is_expected_too_late_is_compared_by_whoever_expects_it() {
        let (first, _demand) = SharedFetch::start();
        let digest = |byte: &str| format!("md5:{}", byte.repeat(32)).parse::<Digest>().unwrap();
        assert!(first.expect(&digest("0")));
        assert_eq!(first.shared.expected_for_comparison(), [digest("0")]);
        assert!(first.expect(&digest("0")) && !first.expect(&digest("1")));
    }
}
