//! Receive: a request's body into staged blobs, hashed while it comes in. The first poll of the body is what sends
//! `100 Continue`, so everything that can refuse a request has done so before.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http_body::Body as _;
use hyper::body::Incoming;
use packhouse_runtime::{Appended, BodyPlan, Intent, Part};
use packhouse_store::{Append, Blob, RepositoryId, Store, StoreError};
use tokio::time::{Instant, Sleep, sleep};

use crate::catalogue;
use crate::packages::multipart;
use crate::packages::shape::Refused;

/// A refused body up to this size is read to its end, so that the connection can go on.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What a body became.
#[derive(Default)]
pub(crate) struct Received {
    /// The whole of it.
    pub(crate) body: Option<Blob>,
    /// The parts of a form.
    pub(crate) parts: Vec<Part>,
    /// What was added to an upload.
    pub(crate) appended: Option<Appended>,
}

/// A body that comes in, given up when no byte comes for `idle`. There is no limit on its total time.
pub(crate) struct Arriving {
    body: Incoming,
    idle: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    ended: bool,
    failed: bool,
}

impl Arriving {
    /// Nothing is read yet.
    pub(crate) fn new(body: Incoming, idle: Duration) -> Self {
        Self { body, idle, deadline: None, ended: false, failed: false }
    }

    /// The next bytes; none at the end. 408 when none come in time or the body breaks off, 400 when its framing is wrong.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        let next = self.read().await;
        self.ended |= matches!(next, Ok(None));
        self.failed |= next.is_err();
        next
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Refused> {
        let idle = self.idle;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(idle)));
        deadline.as_mut().reset(Instant::now() + idle);
        loop {
            let frame = std::future::poll_fn(|cx| match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                Poll::Pending => deadline.as_mut().poll(cx).map(Err),
            });
            match frame.await {
                Err(()) => return Err(Refused::of(&catalogue::REQUEST_TIMEOUT)),
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
    pub(crate) async fn drain(mut self, headers: &HeaderMap) -> bool {
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
fn broken(error: &hyper::Error) -> Refused {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            Refused::with(&catalogue::INVALID_REQUEST, "The body is not framed as HTTP has it.")
        }
        _ => Refused::of(&catalogue::REQUEST_TIMEOUT),
    }
}

/// The body's length as the client declares it.
pub(crate) fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the client waits to be told to go on.
pub(crate) fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// 413 for a body that is too large by its own declaration.
pub(crate) fn refuse_by_length(intent: &Intent, headers: &HeaderMap) -> Result<(), Refused> {
    let limit = match intent.body {
        BodyPlan::None => return Ok(()),
        BodyPlan::Body { limit } | BodyPlan::Parts { limit } | BodyPlan::Append { limit, .. } => limit,
    };
    match declared(headers) {
        Some(length) if length > limit => Err(of_manifest(intent, too_large(limit))),
        _ => Ok(()),
    }
}

/// A manifest that is too large has words of its own in a registry.
fn of_manifest(intent: &Intent, refused: Refused) -> Refused {
    if intent.manifest { refused.in_registry(&catalogue::REGISTRY_MANIFEST_SIZE) } else { refused }
}

/// 413 with the limit in its sentence.
pub(crate) fn too_large(limit: u64) -> Refused {
    Refused::with(&catalogue::FILE_TOO_LARGE, &limit.to_string())
}

/// Takes a body in as the intent asks. 413 as soon as it is over the limit; what was staged is gone then.
pub(crate) async fn receive(
    store: &Store,
    target: Option<RepositoryId>,
    intent: &Intent,
    headers: &HeaderMap,
    body: &mut Arriving,
) -> Result<Received, Refused> {
    match &intent.body {
        BodyPlan::None => Ok(Received::default()),
        BodyPlan::Body { limit } => {
            let blob = stage(store, target, intent, *limit, body).await?;
            Ok(Received { body: Some(blob), ..Received::default() })
        }
        BodyPlan::Parts { limit } => {
            let form = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
            let parts = multipart::receive((store, target), &intent.digests, form, *limit, body).await?;
            Ok(Received { parts, ..Received::default() })
        }
        BodyPlan::Append { upload, offset, limit } => {
            let appended = append(store, target, (upload, *offset, *limit), body).await?;
            Ok(Received { appended, ..Received::default() })
        }
    }
}

async fn stage(
    store: &Store,
    target: Option<RepositoryId>,
    intent: &Intent,
    limit: u64,
    body: &mut Arriving,
) -> Result<Blob, Refused> {
    let mut stager = store.stage(&intent.digests, limit).of(target);
    while let Some(bytes) = body.next().await? {
        stager.write(bytes).await.map_err(|error| match error {
            StoreError::TooLarge { limit, .. } => of_manifest(intent, too_large(limit)),
            other => Refused::from(other),
        })?;
    }
    Ok(stager.finish().await?)
}

/// A body that goes to an upload. Where there is none of that name, or its length is another, nothing is read.
async fn append(
    store: &Store,
    target: Option<RepositoryId>,
    (name, offset, limit): (&str, Option<u64>, u64),
    body: &mut Arriving,
) -> Result<Option<Appended>, Refused> {
    let nothing = Some(Appended { upload: name.to_owned(), received: 0 });
    let Some(target) = target else { return Ok(nothing) };
    let Some(upload) = store.upload(target, name).await? else { return Ok(nothing) };
    let Append::Ready(mut appender) = upload.append(offset, limit).await? else { return Ok(nothing) };
    let mut received = 0;
    while let Some(bytes) = body.next().await? {
        received += bytes.len() as u64;
        appender.write(bytes).await.map_err(refused_bytes)?;
    }
    appender.finish().await?;
    Ok(Some(Appended { upload: name.to_owned(), received }))
}

/// A write's failure, where too many bytes are the client's fault.
pub(crate) fn refused_bytes(error: StoreError) -> Refused {
    match error {
        StoreError::TooLarge { limit, .. } => too_large(limit),
        other => Refused::from(other),
    }
}
