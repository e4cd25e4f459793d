//! `blob.decode`: decodes bytes into a new blob, with at most one piece in memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use async_compression::tokio::bufread::{DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use packhouse_store::{Blob, Stager, StoreError};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::io::StreamReader;

use crate::error::CallError;
use crate::host_error::HostError;

/// Bytes that are decoded at a time.
const PIECE: usize = 256 << 10;

/// Most decoded bytes for each encoded byte.
const RATIO: u64 = 100;
/// Number of decoded bytes that any input may have, whatever its ratio is.
const ALWAYS: u64 = 64 << 20;
/// Limit of decoded bytes for every input, however large the input is.
const NEVER: u64 = 100 << 30;

/// During decoding, the output may exceed [`RATIO`] by [`ALWAYS`] and by this many times the
/// encoded size. This allowance is needed because a part of an archive may be much denser than the
/// rest.
const AHEAD: u64 = 10;
/// Bytes by which the output may exceed [`RATIO`] without [`AHEAD_PERMIT`].
const FREE: u64 = 8 << 20;
/// Permit to exceed [`RATIO`] by more than [`FREE`]. Only one decoding at a time holds it, so that
/// many dense archives fill the disk no more than one.
static AHEAD_PERMIT: Semaphore = Semaphore::const_new(1);

/// Most bytes that this number of encoded bytes may decode to. Larger output most likely comes from
/// data that an attacker made to fill disks.
pub(crate) fn most(encoded: u64) -> u64 {
    encoded.saturating_mul(RATIO).clamp(ALWAYS, NEVER)
}

/// An encoding that the contract names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Encoding {
    /// RFC 4648 with padding. Line ends and blanks are skipped.
    Base64,
    /// RFC 1952, with one or more members.
    Gzip,
    /// RFC 1951, as used in archives.
    Deflate,
    /// RFC 1950, which HTTP calls deflate.
    Zlib,
    /// RFC 8878, with one or more frames.
    Zstd,
}

impl Encoding {
    /// Returns `invalid` for an unknown name.
    pub(crate) fn named(name: &str) -> Result<Encoding, HostError> {
        match name {
            "base64" => Ok(Encoding::Base64),
            "gzip" => Ok(Encoding::Gzip),
            "deflate" => Ok(Encoding::Deflate),
            "zlib" => Ok(Encoding::Zlib),
            "zstd" => Ok(Encoding::Zstd),
            other => Err(HostError::invalid(format!("unknown encoding {other:?}"))),
        }
    }
}

/// Decodes all of `blob`. The stager enforces the limit. Returns `invalid` if the bytes do not have
/// that encoding.
pub(crate) async fn decode(blob: &Blob, encoding: Encoding, stager: Stager) -> Result<Blob, HostError> {
    if encoding == Encoding::Base64 {
        return base64(blob, stager).await;
    }
    let consumed = Arc::new(AtomicU64::new(0));
    let bytes = StreamReader::new(blob.stream(0..blob.size()).map_err(io::Error::other));
    let bytes = Consumed { bytes, count: Arc::clone(&consumed) };
    let growth = Growth { encoded: blob.size(), consumed, decoded: 0, turn: None };
    match encoding {
        Encoding::Gzip => {
            let mut decoder = GzipDecoder::new(bytes);
            decoder.multiple_members(true);
            copy(decoder, growth, stager).await
        }
        Encoding::Zstd => {
            let mut decoder = ZstdDecoder::new(bytes);
            decoder.multiple_members(true);
            copy(decoder, growth, stager).await
        }
        Encoding::Deflate => copy(DeflateDecoder::new(bytes), growth, stager).await,
        Encoding::Zlib | Encoding::Base64 => copy(ZlibDecoder::new(bytes), growth, stager).await,
    }
}

async fn copy(
    mut decoder: impl AsyncRead + Unpin,
    mut growth: Growth,
    mut stager: Stager,
) -> Result<Blob, HostError> {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        while piece.len() < PIECE {
            let read = decoder.read_buf(&mut piece).await.map_err(undecodable)?;
            if read == 0 {
                growth.add(piece.len()).await?;
                stager.write(piece.freeze()).await?;
                return Ok(stager.finish().await?);
            }
        }
        growth.add(piece.len()).await?;
        stager.write(piece.freeze()).await?;
    }
}

/// Ratio of decoded bytes to the bytes read for them.
struct Growth {
    /// Number of all encoded bytes.
    encoded: u64,
    /// Encoded bytes that the decoder has read.
    consumed: Arc<AtomicU64>,
    decoded: u64,
    /// The permit, held once the output exceeds [`RATIO`] by more than [`FREE`].
    turn: Option<SemaphorePermit<'static>>,
}

impl Growth {
    /// Accounts for bytes that are about to be staged. Waits for the permit if the output exceeds
    /// [`RATIO`] by more than [`FREE`]. Returns `too_large` above the bound of [`AHEAD`].
    async fn add(&mut self, bytes: usize) -> Result<(), HostError> {
        self.decoded = self.decoded.saturating_add(bytes as u64);
        let ahead = self.ahead();
        if ahead > ALWAYS.saturating_add(self.encoded.saturating_mul(AHEAD)) {
            return Err(HostError::too_large(self.decoded));
        }
        if ahead > FREE && self.turn.is_none() {
            // The semaphore is never closed.
            self.turn = AHEAD_PERMIT.acquire().await.ok();
        }
        Ok(())
    }

    fn ahead(&self) -> u64 {
        self.decoded.saturating_sub(self.consumed.load(Ordering::Relaxed).saturating_mul(RATIO))
    }
}

/// Encoded bytes, counted as the decoder reads them.
struct Consumed<R> {
    bytes: R,
    count: Arc<AtomicU64>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Consumed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.bytes).poll_read(cx, buffer);
        let read = buffer.filled().len().saturating_sub(before);
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        outcome
    }
}

impl<R: AsyncBufRead + Unpin> AsyncBufRead for Consumed<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().bytes).poll_fill_buf(cx)
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        self.count.fetch_add(amount as u64, Ordering::Relaxed);
        Pin::new(&mut self.bytes).consume(amount);
    }
}

/// Converts a read error of the decoder: a failure of the store stays one, and any other error
/// means invalid input.
fn undecodable(error: io::Error) -> HostError {
    match error.downcast::<StoreError>() {
        Ok(error) => HostError::Stop(CallError::Store(error)),
        Err(error) => HostError::invalid(format!("the bytes cannot be decoded: {error}")),
    }
}

async fn base64(blob: &Blob, mut stager: Stager) -> Result<Blob, HostError> {
    let mut stream = blob.stream(0..blob.size());
    let mut decoder = Base64::default();
    while let Some(piece) = stream.next().await {
        stager.write(decoder.push(&piece?)?).await?;
    }
    stager.write(decoder.finish()?).await?;
    Ok(stager.finish().await?)
}

/// Decoder of base64 that arrives in pieces of any length.
#[derive(Default)]
struct Base64 {
    /// Characters that do not complete a group of four yet.
    rest: Vec<u8>,
    /// True after padding; nothing may follow.
    ended: bool,
}

impl Base64 {
    fn push(&mut self, piece: &[u8]) -> Result<Bytes, HostError> {
        let mut text = std::mem::take(&mut self.rest);
        text.extend(piece.iter().filter(|byte| !byte.is_ascii_whitespace()));
        self.rest = text.split_off(text.len() - text.len() % 4);
        self.decode(&text)
    }

    fn finish(&mut self) -> Result<Bytes, HostError> {
        let rest = std::mem::take(&mut self.rest);
        self.decode(&rest)
    }

    fn decode(&mut self, text: &[u8]) -> Result<Bytes, HostError> {
        if text.is_empty() {
            return Ok(Bytes::new());
        }
        if self.ended {
            return Err(HostError::invalid("the base64 text continues after its padding"));
        }
        self.ended = text.ends_with(b"=");
        let decoded = STANDARD.decode(text);
        let bytes =
            decoded.map_err(|error| HostError::invalid(format!("the text is not base64: {error}")))?;
        Ok(Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&str]) -> Option<Vec<u8>> {
        let mut decoder = Base64::default();
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend(decoder.push(piece.as_bytes()).ok()?);
        }
        bytes.extend(decoder.finish().ok()?);
        Some(bytes)
    }

    fn growth(encoded: u64) -> Growth {
        Growth { encoded, consumed: Arc::default(), decoded: 0, turn: None }
    }

    #[tokio::test]
    async fn a_decompression_bomb_ends_during_decoding() {
        let mut bomb = growth(2_000_000);
        let mut staged = 0;
        while bomb.add(PIECE).await.is_ok() {
            // A gzip bomb: the decoder reads a thousandth of the bytes that it writes.
            bomb.consumed.fetch_add(PIECE as u64 / 1000, Ordering::Relaxed);
            staged += PIECE as u64;
        }
        assert!(staged < 100 << 20, "{staged} bytes");
        assert!(bomb.turn.is_some());
        // A second decoding waits once it exceeds the ratio by more than `FREE`. It continues when
        // the first one ends.
        let mut other = growth(2_000_000);
        for _ in 0..FREE / PIECE as u64 {
            other.add(PIECE).await.ok().unwrap();
        }
        assert!(futures::poll!(std::pin::pin!(other.add(PIECE))).is_pending());
        drop(bomb);
        other.add(PIECE).await.ok().unwrap();
        assert!(other.turn.is_some());
    }

    #[tokio::test]
    async fn usual_growth_waits_for_nothing() {
        let mut usual = growth(1 << 30);
        for _ in 0..10_000 {
            usual.consumed.fetch_add(PIECE as u64 / 50, Ordering::Relaxed);
            usual.add(PIECE).await.ok().unwrap();
        }
        assert!(usual.turn.is_none());
    }

    #[test]
    fn base64_comes_in_pieces_of_any_length() {
        for pieces in [&["aGVsbG8="][..], &["a", "GVs", "bG", "8="], &["aGVs\r\nbG8=\n"]] {
            assert_eq!(decoded(pieces).unwrap(), b"hello", "{pieces:?}");
        }
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    #[test]
    fn invalid_base64_is_refused() {
        for pieces in [&["aGVsbG8"][..], &["aGVsbG8=", "aGVs"], &["aG=sbG8="], &["!!!!"], &["a"]] {
            assert!(decoded(pieces).is_none(), "{pieces:?}");
        }
    }
}
