//! The body of a request as it comes in, with a limit on the time without a byte. The first poll of it is what sends
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

/// A refused body up to this size is read to its end, so that the connection can go on.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Why a body did not come in whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyError {
    /// No byte came in time, or the connection ended within the body.
    BrokenOff,
    /// It is not framed as HTTP has it.
    Malformed,
}

/// A body that comes in, given up when no byte comes for `idle`. There is no limit on its total time.
pub struct IncomingBody {
    body: Incoming,
    idle: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    ended: bool,
    failed: bool,
}

impl IncomingBody {
    /// Nothing is read yet.
    pub fn new(body: Incoming, idle: Duration) -> Self {
        Self { body, idle, deadline: None, ended: false, failed: false }
    }

    /// The next bytes; none at the end. [`BodyError::BrokenOff`] when none come in time or the body ends early, [`BodyError::Malformed`] when its
    /// framing is wrong.
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
                    // Trailers are nobody's business here.
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads what is left of a small body that nobody wants, so that the connection can go on and the answer is not lost on a
    /// client that is still sending. False when bytes are left: then the connection has to be closed behind the answer.
    pub async fn drain(mut self, headers: &HeaderMap) -> bool {
        let small = declared(headers).is_some_and(|length| length <= DRAIN_BYTES);
        if small && !self.failed && !expects_continue(headers) && !self.is_spent() {
            let all = async { while let Ok(Some(_)) = self.next().await {} };
            let _ = tokio::time::timeout(DRAIN_TIME, all).await;
        }
        self.is_spent()
    }

    /// A chunked body does not know its end until it was asked for it.
    fn is_spent(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

/// A body that is not framed as HTTP has it, or that breaks off.
fn broken(error: &hyper::Error) -> BodyError {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => BodyError::Malformed,
        _ => BodyError::BrokenOff,
    }
}

/// The body's length as the client declares it.
pub fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the client waits to be told to go on.
pub fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
