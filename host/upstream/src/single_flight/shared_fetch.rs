//! A fetch from the point of view of the calls that wait for it. All of them get its head, and each
//! reads the bytes at its own pace.
//!
//! The body is not read before a call demands it. By then every waiting call has named the digests
//! that it expects. The response is cached when it is complete and verified. If all waiters are
//! gone before they demanded the body, the request is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use packhouse_store::{Arriving, Digest};
use tokio::sync::{mpsc, watch};

use super::super::error::UpstreamError;
use super::super::fetched::FetchedResponse;
use super::super::sync::lock;
use super::super::unverified::UnverifiedResponse;

/// The head, or the error, once it is known.
type HeadResult = Option<Result<FetchedResponse, UpstreamError>>;

/// A request in progress that several calls share.
pub(crate) struct SharedFetch {
    head: watch::Sender<HeadResult>,
    waiters: mpsc::WeakSender<()>,
    /// Keeps the channel open once the body is demanded, so that later calls can join even if no
    /// call is waiting.
    demanded: Mutex<Option<mpsc::Sender<()>>>,
    expected: Mutex<ExpectedDigests>,
    /// True if later calls cannot use the result.
    failed: AtomicBool,
    /// The response, if a plugin must read it before it is cached.
    pub unverified: Arc<UnverifiedResponse>,
    started: Instant,
}

#[derive(Default)]
struct ExpectedDigests {
    digests: Vec<Digest>,
    /// True once the bytes have been compared with the digests.
    compared: bool,
}

/// A waiting call. The request is cancelled when the last one is dropped.
#[derive(Clone)]
pub(crate) struct Waiter {
    pub shared: Arc<SharedFetch>,
    alive: mpsc::Sender<()>,
}

/// Tells the fetcher when a call demands the body.
pub(crate) struct BodyDemand(mpsc::Receiver<()>);

impl SharedFetch {
    /// Creates a fetch with its first waiter.
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

    /// Adds a waiter. None if the fetch was cancelled or failed, or if its response was unreadable:
    /// a call that comes after the failure sends a new request.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Waiter> {
        if self.failed.load(Ordering::Acquire) || self.unverified.is_rejected() {
            return None;
        }
        let alive = self.waiters.upgrade()?;
        Some(Waiter { shared: Arc::clone(self), alive })
    }

    /// Passes the head, or the error, to all waiting calls.
    pub(crate) fn publish_head(&self, head: Result<FetchedResponse, UpstreamError>) {
        if head.as_ref().map_or(true, |fetched| fetched.status >= 400) {
            self.note_failed();
        }
        self.head.send_replace(Some(head));
    }

    /// Prevents further calls from joining. Must be called before the failure is published.
    pub(crate) fn note_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Returns the time since the start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns all digests that are expected so far.
    pub(crate) fn expected(&self) -> Vec<Digest> {
        lock(&self.expected).digests.clone()
    }

    /// Returns the expected digests for the comparison. A caller that expects another digest later
    /// must compare it itself.
    pub(crate) fn expected_for_comparison(&self) -> Vec<Digest> {
        let mut expected = lock(&self.expected);
        expected.compared = true;
        expected.digests.clone()
    }
}

impl Waiter {
    /// Adds an expected digest of the body. Returns false if the bytes have already been compared.
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

    /// Waits for the head of the response.
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
    /// Waits until a call demands the body. Returns false if no waiter is left.
    pub(crate) async fn wait(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Waits until the body begins to arrive, and returns it.
pub(crate) async fn arriving(mut body: watch::Receiver<Option<Arriving>>) -> Result<Arriving, UpstreamError> {
    let arriving = body.wait_for(Option::is_some).await.map_err(|_| cancelled())?.clone();
    arriving.ok_or_else(cancelled)
}

fn cancelled() -> UpstreamError {
    UpstreamError::Unavailable("the request to the upstream was cancelled".to_owned())
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
    async fn a_call_after_a_failure_does_not_join_the_fetch() {
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
        assert!(first.shared.join().is_none(), "no call joins an unreadable response");
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
        assert!(shared.join().is_some(), "a later call can join");
    }

    #[tokio::test]
    async fn a_digest_expected_after_the_comparison_is_not_accepted() {
        let (first, _demand) = SharedFetch::start();
        let digest = |byte: &str| format!("md5:{}", byte.repeat(32)).parse::<Digest>().unwrap();
        assert!(first.expect(&digest("0")));
        assert_eq!(first.shared.expected_for_comparison(), [digest("0")]);
        assert!(first.expect(&digest("0")) && !first.expect(&digest("1")));
    }
}
