//! A connection's stream with what hyper does not do by itself: a deadline for the first head, request heads watched (`heads`),
//! a client that takes no bytes given up, and a close that waits for a client which is still sending, so that it sees its answer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::heads::Heads;

/// How long a close waits for a client that is still sending a refused body.
const LINGER: Duration = Duration::from_secs(3);

/// The times after which a guarded stream is given up.
#[derive(Clone, Copy, Debug)]
pub struct GuardTimes {
    /// For the first head of the connection, from its beginning to its end.
    pub first_head: Duration,
    /// For a client that takes no byte of an answer.
    pub stalled_write: Duration,
}

/// See the module.
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

    /// Passes on a write's outcome, and gives up a stream that has not taken anything for too long.
    fn written<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let limit = self.times.stalled_write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes")))
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
            if this.heads.seen_one() {
                this.first_head = None;
            }
            return Poll::Ready(outcome);
        }
        if let Some(deadline) = &mut this.first_head {
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request came")));
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
