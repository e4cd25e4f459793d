//! Tracks the bytes of a response that were passed to the connection but not yet sent. An HTTP/2
//! response lasts until its last byte was sent. If nothing is sent for too long, its stream is
//! reset; the connection continues.
//!
//! hyper does not poll a body while the flow control window of its stream is empty, so a timer in
//! the body would not run. [`StreamExecutor`] therefore wraps the timer around hyper's future of
//! the stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

use super::connection::{Hold, InFlightRequest};

/// Counters of one stream: bytes passed to the connection, and how many of these bytes were sent.
#[derive(Debug, Default)]
pub struct Outbox {
    handed: AtomicU64,
    taken: AtomicU64,
    emptied: AtomicWaker,
}

impl Outbox {
    fn waits(&self) -> bool {
        self.taken.load(Ordering::Acquire) < self.handed.load(Ordering::Acquire)
    }

    fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::AcqRel);
        if !self.waits() {
            self.emptied.wake();
        }
    }

    fn poll_empty(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.emptied.register(cx.waker());
        if self.waits() { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Bytes of a response that update their outbox when they are sent.
#[derive(Debug)]
pub struct TrackedBytes {
    bytes: Bytes,
    outbox: Option<Arc<Outbox>>,
}

impl TrackedBytes {
    fn new(bytes: Bytes, outbox: Option<&Arc<Outbox>>) -> Self {
        if let Some(outbox) = outbox {
            outbox.handed.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        }
        Self { bytes, outbox: outbox.cloned() }
    }
}

impl Buf for TrackedBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(outbox) = &self.outbox {
            outbox.take(count);
        }
    }
}

impl Drop for TrackedBytes {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take().filter(|_| !self.bytes.is_empty()) {
            outbox.take(self.bytes.len());
        }
    }
}

/// Body of a response that is being sent. On HTTP/2 it has an outbox and ends when its last byte
/// was sent.
pub struct Outgoing<B> {
    body: B,
    outbox: Option<Arc<Outbox>>,
    ended: bool,
    _resources: RequestResources,
}

/// Resources of a request until its response was sent: its place among the requests in flight, its
/// slot, and the memory of the response.
type RequestResources = (InFlightRequest, Option<OwnedSemaphorePermit>, Option<Hold>);

impl<B: Body<Data = Bytes> + Unpin> Outgoing<B> {
    /// Wraps a body. The request keeps its resources until the wrapper is dropped.
    pub fn new(body: B, outbox: Option<Arc<Outbox>>, resources: RequestResources) -> Self {
        let ended = body.is_end_stream();
        Self { body, outbox, ended, _resources: resources }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Outgoing<B> {
    type Data = TrackedBytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<TrackedBytes>, B::Error>>> {
        let this = &mut *self;
        if !this.ended {
            if let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                let outbox = this.outbox.as_ref();
                return Poll::Ready(Some(
                    frame.map(|frame| frame.map_data(|bytes| TrackedBytes::new(bytes, outbox))),
                ));
            }
            this.ended = true;
        }
        if let Some(outbox) = &this.outbox {
            ready!(outbox.poll_empty(cx));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        match &self.outbox {
            // A body with bytes ends only once the last one was sent.
            Some(outbox) => self.ended && !outbox.waits(),
            None => self.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Runs the streams of one HTTP/2 connection, and resets a stream whose client reads nothing.
#[derive(Clone, Debug)]
pub struct StreamExecutor {
    next: Arc<Mutex<Option<Arc<Outbox>>>>,
    idle: Duration,
}

impl StreamExecutor {
    /// Resets streams on which nothing is sent for the time `idle`.
    pub fn new(idle: Duration) -> Self {
        Self { next: Arc::default(), idle }
    }

    /// Creates the outbox of the stream whose request has just arrived. hyper passes the stream's
    /// future to [`Executor::execute`] next.
    pub fn announce(&self) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::default());
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&outbox));
        outbox
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let outbox = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match outbox {
            Some(outbox) => {
                let (stream, idle) = (Box::pin(stream), self.idle);
                tokio::spawn(IdleTimeoutStream { stream, outbox, idle, taken_at_reset: 0, deadline: None });
            }
            None => drop(tokio::spawn(stream)),
        }
    }
}

/// Future of a stream with a timer that runs while bytes wait. Dropping the future resets the
/// stream.
struct IdleTimeoutStream<F> {
    stream: Pin<Box<F>>,
    outbox: Arc<Outbox>,
    idle: Duration,
    /// Number of bytes sent when the timer was last reset.
    taken_at_reset: u64,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for IdleTimeoutStream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !this.outbox.waits() {
            this.deadline = None;
            return Poll::Pending;
        }
        let idle = this.idle;
        loop {
            let taken = this.outbox.taken.load(Ordering::Acquire);
            let deadline = this.deadline.get_or_insert_with(|| Box::pin(sleep(idle)));
            if taken != this.taken_at_reset {
                this.taken_at_reset = taken;
                deadline.as_mut().reset(Instant::now() + idle);
            }
            ready!(deadline.as_mut().poll(cx));
            if this.outbox.taken.load(Ordering::Acquire) == this.taken_at_reset {
                metrics::counter!("packhouse_streams_given_up_total").increment(1);
                return Poll::Ready(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionState;
    use http_body_util::{BodyExt as _, Full};

    fn outgoing(text: &'static str) -> (Outgoing<Full<Bytes>>, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::default());
        let under_way = ConnectionState::new().begin();
        (Outgoing::new(Full::from(text), Some(Arc::clone(&outbox)), (under_way, None, None)), outbox)
    }

    #[tokio::test]
    async fn a_body_ends_when_its_last_byte_is_sent() {
        let (mut body, outbox) = outgoing("hello");
        let mut data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(!body.is_end_stream());
        data.advance(4);
        assert!(outbox.waits() && futures::poll!(body.frame()).is_pending());
        drop(data);
        assert!(body.is_end_stream() && body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_without_bytes_has_ended_already() {
        assert!(outgoing("").0.is_end_stream());
    }

    #[tokio::test]
    async fn a_stream_on_which_nothing_is_sent_is_reset() {
        let (mut body, outbox) = outgoing("hello");
        let mut data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let idle = Duration::from_millis(200);
        let stream = Box::pin(std::future::pending::<()>());
        let watched = IdleTimeoutStream { stream, outbox, idle, taken_at_reset: 0, deadline: None };
        let start = Instant::now();
        let slow = async {
            tokio::time::sleep(idle / 2).await;
            data.advance(1);
            data
        };
        let ((), _data) = tokio::join!(watched, slow);
        // The timer restarts with the byte that was sent.
        assert!(start.elapsed() >= idle * 3 / 2, "{:?}", start.elapsed());
    }
}
