//! Stream of a connection with protections that hyper lacks: a deadline for the first request head,
//! a scan of all heads (`heads`), and a timeout for clients that read nothing. Closing waits for a
//! client that is still sending, so that the client gets the response.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::heads::Heads;

/// How long closing waits for a client that is still sending a refused body.
const LINGER: Duration = Duration::from_secs(3);

/// Time limits of a guarded stream.
#[derive(Clone, Copy, Debug)]
pub struct GuardTimes {
    /// Limit for receiving the complete first head of the connection.
    pub first_head: Duration,
    /// Limit for a client that reads no byte of a response.
    pub stalled_write: Duration,
}

/// Guarded stream; see the module documentation.
pub struct Guard<S> {
    stream: S,
    heads: Heads,
    times: GuardTimes,
    first_head: Option<Pin<Box<Sleep>>>,
    stalled: Option<Pin<Box<Sleep>>>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl<S> Guard<S> {
    /// Guards a stream that has just been accepted.
    pub fn new(stream: S, times: GuardTimes) -> Self {
        let first_head = Some(Box::pin(sleep(times.first_head)));
        Self { stream, heads: Heads::new(), times, first_head, stalled: None, linger: None }
    }

    /// Passes on the result of a write. Fails if the stream has accepted no bytes for too long.
    fn written<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let limit = self.times.stalled_write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if let Poll::Ready(outcome) = Pin::new(&mut this.stream).poll_read(cx, buffer) {
            this.heads.watch(buffer.filled_mut().get_mut(before..).unwrap_or_default());
            if this.heads.has_complete_head() {
                this.first_head = None;
            }
            return Poll::Ready(outcome);
        }
        if let Some(deadline) = &mut this.first_head {
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request arrived in time")));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.written(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.heads.body_outstanding() {
                return Poll::Ready(Ok(()));
            }
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut scratch = [0; 8192];
        loop {
            if linger.deadline() <= Instant::now() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut this.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => (),
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return linger.as_mut().poll(cx).map(Ok),
            }
        }
    }
}
