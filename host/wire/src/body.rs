//! The body of an answer: bytes that are there, or a stream of them from storage.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use packhouse_store::StoreError;

use super::connection::Hold;
use crate::request_meters::Ticket;

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// An answer's body.
pub struct Body {
    inner: Inner,
    /// What it may hold in memory, where that is counted. Each piece of it has a share, since pieces outlive their body.
    hold: Option<Arc<Hold>>,
    /// Dropped with the body, when all of it is sent or nobody wants it any more.
    _ticket: Option<Ticket>,
}

impl From<Inner> for Body {
    fn from(inner: Inner) -> Self {
        Self { inner, hold: None, _ticket: None }
    }
}

enum Inner {
    Full(Option<Bytes>),
    /// Bytes that are in memory in parts, none of which is empty, the last one first.
    Parts {
        rest: Vec<Bytes>,
        left: u64,
    },
    Stream {
        chunks: Chunks,
        left: u64,
        request_id: String,
    },
    /// Of a length that nobody announced.
    Open {
        chunks: Chunks,
        request_id: String,
    },
}

impl Body {
    /// The same, with what says that its request is under way.
    pub fn with_ticket(self, ticket: Ticket) -> Self {
        Self { _ticket: Some(ticket), ..self }
    }

    /// No bytes.
    pub fn empty() -> Self {
        Inner::Full(None).into()
    }

    /// Bytes that are in memory anyway.
    pub fn full(bytes: Bytes) -> Self {
        Inner::Full(Some(bytes).filter(|bytes| !bytes.is_empty())).into()
    }

    /// The same in parts.
    pub fn parts(mut parts: Vec<Bytes>) -> Self {
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Inner::Parts { rest: parts, left }.into()
    }

    /// `length` bytes from storage. If they break off, so does the connection, and the log says why under `request_id`.
    pub fn stream(
        chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
        length: u64,
        request_id: &str,
    ) -> Self {
        Inner::Stream { chunks: Box::pin(chunks), left: length, request_id: request_id.to_owned() }.into()
    }

    /// Bytes that still come in, of this length where it is known. If they break off, so does the connection.
    pub fn arriving(
        chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
        length: Option<u64>,
        request_id: &str,
    ) -> Self {
        match length {
            Some(length) => Self::stream(chunks, length, request_id),
            None => Inner::Open { chunks: Box::pin(chunks), request_id: request_id.to_owned() }.into(),
        }
    }

    /// The same with what it holds in memory, which is given back with the last of its bytes.
    pub fn holding(self, hold: Option<Hold>) -> Self {
        Self { hold: hold.map(Arc::new), ..self }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        match &mut self.inner {
            Inner::Full(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Inner::Parts { rest, left } => Poll::Ready(rest.pop().map(|bytes| {
                *left = left.saturating_sub(bytes.len() as u64);
                Ok(bytes)
            })),
            Inner::Open { chunks, request_id } => chunks.as_mut().poll_next(cx).map(|next| {
                if let Some(Err(error)) = &next {
                    tracing::warn!(%request_id, %error, "an answer broke off");
                }
                next
            }),
            Inner::Stream { chunks, left, request_id } => {
                chunks.as_mut().poll_next(cx).map(|next| match next {
                    Some(Ok(bytes)) => {
                        *left = left.saturating_sub(bytes.len() as u64);
                        Some(Ok(bytes))
                    }
                    Some(Err(error)) => {
                        tracing::error!(%request_id, %error, left, "an answer broke off");
                        Some(Err(error))
                    }
                    None if *left > 0 => {
                        tracing::error!(%request_id, left, "an answer ended too early");
                        Some(Err(StoreError::Corrupt("a blob ended too early".to_owned())))
                    }
                    None => None,
                })
            }
        }
    }
}

/// A piece of an answer, whose memory counts until it is gone.
struct HeldBytes {
    bytes: Bytes,
    _hold: Arc<Hold>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let hold = self.hold.clone();
        self.poll_bytes(cx).map_ok(|bytes| {
            Frame::data(match hold {
                Some(hold) => Bytes::from_owner(HeldBytes { bytes, _hold: hold }),
                None => bytes,
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Full(bytes) => bytes.is_none(),
            Inner::Parts { rest, .. } => rest.is_empty(),
            // Asked to the end, so that a blob which does not match its check value is never taken for whole.
            Inner::Stream { .. } | Inner::Open { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Inner::Parts { left, .. } | Inner::Stream { left, .. } => SizeHint::with_exact(*left),
            Inner::Open { .. } => SizeHint::default(),
        }
    }
}
