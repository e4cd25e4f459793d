//! Incoming body of a request, with a limit on the time without a byte. The first poll sends
//! `100 Continue`.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

/// A refused body up to this size is read to its end, so that the connection can be reused.
const DRAIN_BYTES: u64 = 64 * 1024;
/// Time limit for reading a refused body to its end.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Reason why a body was not received completely.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyError {
    /// No byte arrived in time, or the connection ended within the body.
    BrokenOff,
    /// The framing of the body violates HTTP.
    Malformed,
}

/// An incoming body. Reading fails if no byte arrives for the time `idle`; the total time is not
/// limited.
pub struct IncomingBody {
    body: Incoming,
    idle: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    ended: bool,
    failed: bool,
}

impl IncomingBody {
    /// Wraps a body without reading from it.
    pub fn new(body: Incoming, idle: Duration) -> Self {
        Self { body, idle, deadline: None, ended: false, failed: false }
    }

    /// Returns the next bytes; `None` at the end. [`BodyError::BrokenOff`] if no bytes arrive in
    /// time or the body ends early, [`BodyError::Malformed`] if its framing is invalid.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        let next = self.read().await;
        self.ended |= matches!(next, Ok(None));
        self.failed |= next.is_err();
        next
    }

    async fn read(&mut self) -> Result<Option<Bytes>, BodyError> {
        let idle = self.idle;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(idle)));
        deadline.as_mut().reset(Instant::now() + idle);
        loop {
            let frame = std::future::poll_fn(|cx| match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                Poll::Pending => deadline.as_mut().poll(cx).map(Err),
            });
            match frame.await {
                Err(()) => return Err(BodyError::BrokenOff),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(broken(&error)),
                Ok(Some(Ok(frame))) => {
                    // Trailers are ignored.
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads the rest of a small body that is not needed. The connection can then be reused, and a
    /// client that is still sending gets the response. Returns false if bytes are left: the
    /// connection must then be closed after the response.
    pub async fn drain(mut self, headers: &HeaderMap) -> bool {
        let small = declared(headers).is_some_and(|length| length <= DRAIN_BYTES);
        if small && !self.failed && !expects_continue(headers) && !self.is_spent() {
            let all = async { while let Ok(Some(_)) = self.next().await {} };
            let _ = tokio::time::timeout(DRAIN_TIME, all).await;
        }
        self.is_spent()
    }

    /// Returns whether the body was read to its end. For a chunked body, this is known only after
    /// another read.
    fn is_spent(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

/// Converts hyper's error: invalid framing or an aborted body.
fn broken(error: &hyper::Error) -> BodyError {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => BodyError::Malformed,
        _ => BodyError::BrokenOff,
    }
}

/// Returns the `Content-Length` that the client declares.
pub fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns whether the client waits for `100 Continue`.
pub fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
