//! One request to an upstream that many wait for. Its head reaches all of them, and its bytes each at its own pace.
//!
//! Nothing is read of a body before somebody wants it, and by then each has said what it must be. It is kept when it is whole and
//! right; if all who asked have gone before they wanted it, the request is given up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::{Arriving, Blob, Digest};
use tokio::sync::{mpsc, watch};

use super::candidate::Candidate;
use super::trouble::Trouble;

/// What came of a question: its head, and where its content is.
#[derive(Clone)]
pub(crate) struct Landed {
    pub status: u16,
    pub headers: Arc<Vec<(String, String)>>,
    pub address: String,
    pub content: Content,
    /// Whether the upstream said that a kept answer is still right.
    pub revalidated: bool,
}

/// Where an answer's content is.
#[derive(Clone)]
pub(crate) enum Content {
    /// All of it is here; of a kept answer without content, nothing.
    Whole(Option<Blob>),
    /// It comes when it is wanted.
    Body(watch::Receiver<Option<Arriving>>),
}

impl Landed {
    /// An answer without headers and content.
    pub(crate) fn bare(status: u16, address: &str) -> Landed {
        Landed {
            status,
            headers: Arc::default(),
            address: address.to_owned(),
            content: Content::Whole(None),
            revalidated: false,
        }
    }

    /// A header of it; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// What is known before the content is there.
pub(crate) type Head = Option<Result<Landed, Trouble>>;

/// A request that is under way, as those see it who wait for it.
pub(crate) struct Flight {
    head: watch::Sender<Head>,
    interest: mpsc::WeakSender<()>,
    /// Once the body is wanted: whoever comes later joins in, though nobody waits at the moment.
    wanted: Mutex<Option<mpsc::Sender<()>>>,
    expected: Mutex<Expected>,
    /// What it brings, where that is on trial.
    pub candidate: Arc<Candidate>,
    began: Instant,
}

#[derive(Default)]
struct Expected {
    digests: Vec<Digest>,
    /// The bytes have been compared already.
    compared: bool,
}

/// One who waits. The request is given up with the last.
#[derive(Clone)]
pub(crate) struct Passenger {
    pub flight: Arc<Flight>,
    interest: mpsc::Sender<()>,
}

/// Tells the flight whether anybody wants the body.
pub(crate) struct Wanted(mpsc::Receiver<()>);

impl Flight {
    /// A new one with its first passenger.
    pub(crate) fn begin() -> (Passenger, Wanted) {
        let (interest, wanted) = mpsc::channel(1);
        let flight = Arc::new(Flight {
            head: watch::Sender::default(),
            interest: interest.downgrade(),
            wanted: Mutex::default(),
            expected: Mutex::default(),
            candidate: Arc::default(),
            began: Instant::now(),
        });
        (Passenger { flight, interest }, Wanted(wanted))
    }

    /// One more passenger; none when it has been given up already.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Passenger> {
        let interest = self.interest.upgrade()?;
        Some(Passenger { flight: Arc::clone(self), interest })
    }

    /// The head is there.
    pub(crate) fn land(&self, head: Result<Landed, Trouble>) {
        self.head.send_replace(Some(head));
    }

    /// For how long it has been under way.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// All that the bytes must be, so far.
    pub(crate) fn expected(&self) -> Vec<Digest> {
        self.lock().digests.clone()
    }

    /// The same, for the comparison: what is expected later must be compared by whoever expects it.
    pub(crate) fn to_compare(&self) -> Vec<Digest> {
        let mut expected = self.lock();
        expected.compared = true;
        expected.digests.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passenger {
    /// The bytes must be this too. False when they were compared already.
    pub(crate) fn expect(&self, digest: &Digest) -> bool {
        let mut expected = self.flight.lock();
        if !expected.digests.contains(digest) {
            if expected.compared {
                return false;
            }
            expected.digests.push(digest.clone());
        }
        true
    }

    /// Waits for the head.
    pub(crate) async fn head(&self) -> Result<Landed, Trouble> {
        let mut head = self.flight.head.subscribe();
        let lost = || Trouble::Unavailable("the request to the upstream was given up".to_owned());
        let landed = head.wait_for(Option::is_some).await.map_err(|_| lost())?.clone();
        landed.unwrap_or_else(|| Err(lost()))
    }

    /// The body is wanted, whoever goes away from now on.
    pub(crate) fn want(&self) {
        // One wish in the channel is enough.
        let _ = self.interest.try_send(());
        *self.flight.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.interest.clone());
    }
}

impl Wanted {
    /// Waits until somebody wants the body; false when nobody is left.
    pub(crate) async fn body(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Waits until the bytes begin to arrive.
pub(crate) async fn arriving(mut body: watch::Receiver<Option<Arriving>>) -> Result<Arriving, Trouble> {
    let lost = || Trouble::Unavailable("the request to the upstream was given up".to_owned());
    let arriving = body.wait_for(Option::is_some).await.map_err(|_| lost())?.clone();
    arriving.ok_or_else(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flight_is_given_up_with_its_last_passenger() {
        let (first, mut wanted) = Flight::begin();
        let second = first.flight.join().unwrap();
        let flight = Arc::clone(&first.flight);
        drop((first, second));
        assert!(!wanted.body().await);
        assert!(flight.join().is_none());
    }

    #[tokio::test]
    async fn a_wish_outlasts_whoever_had_it() {
        let (first, mut wanted) = Flight::begin();
        let flight = Arc::clone(&first.flight);
        first.want();
        first.want();
        drop(first);
        assert!(wanted.body().await);
        assert!(flight.join().is_some(), "and whoever comes later need not ask again");
    }

    #[tokio::test]
    async fn what_is_expected_too_late_is_compared_by_whoever_expects_it() {
        let (first, _wanted) = Flight::begin();
        let digest = |byte: &str| format!("md5:{}", byte.repeat(32)).parse::<Digest>().unwrap();
        assert!(first.expect(&digest("0")));
        assert_eq!(first.flight.to_compare(), [digest("0")]);
        assert!(first.expect(&digest("0")) && !first.expect(&digest("1")));
    }
}
