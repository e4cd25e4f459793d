//! `blob.decode`: bytes decoded on their way into a new blob, never more of them in memory than a piece.

use std::io;

use async_compression::tokio::bufread::{DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use packhouse_store::{Blob, Stager, StoreError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use crate::error::CallError;
use crate::host_error::HostError;

/// Bytes that are decoded at a time.
const PIECE: usize = 256 << 10;

/// Bytes may decode to so many times as many …
const RATIO: u64 = 100;
/// … and to so many whatever their number, …
const ALWAYS: u64 = 64 << 20;
/// … and never to more.
const NEVER: u64 = 100 << 30;

/// What so many encoded bytes may decode to: what grows out of all proportion is made to fill disks.
pub(crate) fn most(encoded: u64) -> u64 {
    encoded.saturating_mul(RATIO).clamp(ALWAYS, NEVER)
}

/// An encoding that the contract names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Encoding {
    /// RFC 4648 with padding; line ends and blanks between are skipped.
    Base64,
    /// RFC 1952, of one member or several.
    Gzip,
    /// RFC 1951, as archives hold it.
    Deflate,
    /// RFC 1950, which HTTP calls deflate.
    Zlib,
    /// RFC 8878, of one frame or several.
    Zstd,
}

impl Encoding {
    /// `invalid` for a name that is none of these.
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

/// Decodes all of `blob`. The stager holds the limit; `invalid` when the bytes are not of that encoding.
pub(crate) async fn decode(blob: &Blob, encoding: Encoding, stager: Stager) -> Result<Blob, HostError> {
    if encoding == Encoding::Base64 {
        return base64(blob, stager).await;
    }
    let bytes = StreamReader::new(blob.stream(0..blob.size()).map_err(io::Error::other));
    match encoding {
        Encoding::Gzip => {
            let mut decoder = GzipDecoder::new(bytes);
            decoder.multiple_members(true);
            copy(decoder, stager).await
        }
        Encoding::Zstd => {
            let mut decoder = ZstdDecoder::new(bytes);
            decoder.multiple_members(true);
            copy(decoder, stager).await
        }
        Encoding::Deflate => copy(DeflateDecoder::new(bytes), stager).await,
        Encoding::Zlib | Encoding::Base64 => copy(ZlibDecoder::new(bytes), stager).await,
    }
}

async fn copy(mut decoder: impl AsyncRead + Unpin, mut stager: Stager) -> Result<Blob, HostError> {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        while piece.len() < PIECE {
            let read = decoder.read_buf(&mut piece).await.map_err(undecodable)?;
            if read == 0 {
                stager.write(piece.freeze()).await?;
                return Ok(stager.finish().await?);
            }
        }
        stager.write(piece.freeze()).await?;
    }
}

/// The store's own failures come through the decoder as errors of reading.
fn undecodable(error: io::Error) -> HostError {
    match error.downcast::<StoreError>() {
        Ok(error) => HostError::Stop(CallError::Store(error)),
        Err(error) => HostError::invalid(format!("cannot be decoded: {error}")),
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

/// Base64 that comes in pieces of any length.
#[derive(Default)]
struct Base64 {
    /// Characters that do not make up four yet.
    rest: Vec<u8>,
    /// After padding nothing may follow.
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
            return Err(HostError::invalid("base64 goes on after its padding"));
        }
        self.ended = text.ends_with(b"=");
        let bytes =
            STANDARD.decode(text).map_err(|error| HostError::invalid(format!("not base64: {error}")))?;
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

    #[test]
    fn base64_comes_in_pieces_of_any_length() {
        for pieces in [&["aGVsbG8="][..], &["a", "GVs", "bG", "8="], &["aGVs\r\nbG8=\n"]] {
            assert_eq!(decoded(pieces).unwrap(), b"hello", "{pieces:?}");
        }
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for pieces in [&["aGVsbG8"][..], &["aGVsbG8=", "aGVs"], &["aG=sbG8="], &["!!!!"], &["a"]] {
            assert!(decoded(pieces).is_none(), "{pieces:?}");
        }
    }
}
