//! Body of a response: bytes in memory, or a stream from storage.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use packhouse_store::StoreError;

use super::connection::Hold;
use crate::request_meters::InFlightTicket;

type ChunkStream = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// Body of a response, in memory or as a stream.
pub struct Body {
    inner: BodySource,
    /// Reservation for the memory of the body; `None` if the memory is not counted. All pieces of
    /// the body share the reservation, because they can outlive the body.
    hold: Option<Arc<Hold>>,
    /// Marks the request as in flight until the body is dropped.
    _ticket: Option<InFlightTicket>,
}

impl From<BodySource> for Body {
    fn from(inner: BodySource) -> Self {
        Self { inner, hold: None, _ticket: None }
    }
}

enum BodySource {
    Full(Option<Bytes>),
    /// Bytes in memory as non-empty parts, in reverse order.
    Parts {
        rest: Vec<Bytes>,
        left: u64,
    },
    Stream {
        chunks: ChunkStream,
        left: u64,
        request_id: String,
    },
    /// A stream of unknown length.
    Open {
        chunks: ChunkStream,
        request_id: String,
    },
}

impl Body {
    /// Keeps the request registered as in flight until the body is dropped.
    pub fn with_ticket(self, ticket: InFlightTicket) -> Self {
        Self { _ticket: Some(ticket), ..self }
    }

    /// Creates a body without bytes.
    pub fn empty() -> Self {
        BodySource::Full(None).into()
    }

    /// Creates a body of bytes in memory.
    pub fn full(bytes: Bytes) -> Self {
        BodySource::Full(Some(bytes).filter(|bytes| !bytes.is_empty())).into()
    }

    /// Creates a body of several parts in memory.
    pub fn parts(mut parts: Vec<Bytes>) -> Self {
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        let left = parts.iter().map(|part| part.len() as u64).sum();
        BodySource::Parts { rest: parts, left }.into()
    }

    /// Creates a body of `length` bytes from storage. If the stream fails, the connection is
    /// aborted and the reason is logged with `request_id`.
    pub fn stream(
        chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
        length: u64,
        request_id: &str,
    ) -> Self {
        BodySource::Stream { chunks: Box::pin(chunks), left: length, request_id: request_id.to_owned() }
            .into()
    }

    /// Creates a body whose bytes are still arriving. `length` is `None` if it is unknown. If the
    /// stream fails, the connection is aborted.
    pub fn arriving(
        chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
        length: Option<u64>,
        request_id: &str,
    ) -> Self {
        match length {
            Some(length) => Self::stream(chunks, length, request_id),
            None => BodySource::Open { chunks: Box::pin(chunks), request_id: request_id.to_owned() }.into(),
        }
    }

    /// Attaches the reservation for the body's memory. The reservation ends when the body and its
    /// last piece are dropped.
    pub fn holding(self, hold: Option<Hold>) -> Self {
        Self { hold: hold.map(Arc::new), ..self }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        match &mut self.inner {
            BodySource::Full(bytes) => Poll::Ready(bytes.take().map(Ok)),
            BodySource::Parts { rest, left } => Poll::Ready(rest.pop().map(|bytes| {
                *left = left.saturating_sub(bytes.len() as u64);
                Ok(bytes)
            })),
            BodySource::Open { chunks, request_id } => chunks.as_mut().poll_next(cx).map(|next| {
                if let Some(Err(error)) = &next {
                    tracing::warn!(%request_id, %error, "response aborted");
                }
                next
            }),
            BodySource::Stream { chunks, left, request_id } => {
                chunks.as_mut().poll_next(cx).map(|next| match next {
                    Some(Ok(bytes)) => {
                        *left = left.saturating_sub(bytes.len() as u64);
                        Some(Ok(bytes))
                    }
                    Some(Err(error)) => {
                        tracing::error!(%request_id, %error, left, "response aborted");
                        Some(Err(error))
                    }
                    None if *left > 0 => {
                        tracing::error!(%request_id, left, "response ended too early");
                        Some(Err(StoreError::Corrupt(
                            "the blob is shorter than its stated length".to_owned(),
                        )))
                    }
                    None => None,
                })
            }
        }
    }
}

/// A piece of a body. The memory of the body stays reserved until the piece is dropped.
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
            BodySource::Full(bytes) => bytes.is_none(),
            BodySource::Parts { rest, .. } => rest.is_empty(),
            // The stream must be read to its end, which detects a blob with a wrong checksum.
            BodySource::Stream { .. } | BodySource::Open { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            BodySource::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            BodySource::Parts { left, .. } | BodySource::Stream { left, .. } => SizeHint::with_exact(*left),
            BodySource::Open { .. } => SizeHint::default(),
        }
    }
}
