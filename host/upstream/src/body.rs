//! An upstream's bytes on their way in: decoded, counted, written down, and checked before they are kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use packhouse_store::{Algorithm, Arrival, Blob, Digest, StoreError};
use reqwest::Response;
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tokio_util::io::StreamReader;

use super::trouble::Trouble;

/// How much is decoded at a time.
const CHUNK: usize = 64 * 1024;

/// How an answer's content is coded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
    Deflate,
    Zstd,
}

impl Coding {
    /// As the answer says. `Unavailable` for one that was not asked for and is not known. A file that is compressed itself and
    /// was asked for as it is, is left as it is: some servers tell its own compression as the content's.
    pub(crate) fn of(headers: &HeaderMap, path: &str, as_it_is: bool) -> Result<Coding, Trouble> {
        let name = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?"));
        let packed = [".gz", ".tgz", ".zst", ".svgz"].iter().any(|end| path.ends_with(end));
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Coding::Plain),
            _ if packed && as_it_is => Ok(Coding::Plain),
            "gzip" | "x-gzip" => Ok(Coding::Gzip),
            "deflate" => Ok(Coding::Deflate),
            "zstd" => Ok(Coding::Zstd),
            other => Err(Trouble::Unavailable(format!("the upstream codes its answer as {other:?}"))),
        }
    }
}

/// The length that an answer announces of what it becomes.
pub(crate) fn declared(headers: &HeaderMap, coding: Coding) -> Option<u64> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()?;
    (coding == Coding::Plain).then_some(length)
}

type Chunks = BoxStream<'static, io::Result<Bytes>>;

/// The bytes as they come; ends with an error when none come for `idle`, or more than `limit`.
fn chunks(response: Response, idle: Duration, limit: u64) -> Chunks {
    stream::try_unfold((response, 0_u64), move |(mut response, before)| async move {
        let late = |_| io::Error::other("the upstream sends nothing more");
        let chunk = tokio::time::timeout(idle, response.chunk()).await.map_err(late)?;
        let chunk = chunk.map_err(|error| io::Error::other(Trouble::of_client(error)))?;
        let Some(chunk) = chunk else { return Ok(None) };
        let observed = before + chunk.len() as u64;
        if observed > limit {
            return Err(io::Error::other(StoreError::TooLarge { limit, observed }));
        }
        Ok(Some((chunk, (response, observed))))
    })
    .boxed()
}

/// What is decoded may be so many times what came …
const RATIO: u64 = 100;
/// … and so many bytes whatever came.
const ALWAYS: u64 = 64 << 20;

/// The bytes decoded; ends with an error where they grow out of all proportion.
fn decoded(chunks: Chunks, coding: Coding) -> Chunks {
    let came = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&came);
    let chunks = chunks.inspect_ok(move |chunk| {
        counted.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    });
    let reader = BufReader::new(StreamReader::new(chunks));
    let reader: std::pin::Pin<Box<dyn AsyncRead + Send>> = match coding {
        Coding::Plain => Box::pin(reader),
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(reader);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Coding::Deflate => Box::pin(ZlibDecoder::new(reader)),
        Coding::Zstd => Box::pin(ZstdDecoder::new(reader)),
    };
    stream::try_unfold((reader, came, 0_u64), |(mut reader, came, before)| async move {
        let mut bytes = BytesMut::with_capacity(CHUNK);
        let read = reader.read_buf(&mut bytes).await?;
        let observed = before + read as u64;
        let limit = came.load(Ordering::Relaxed).saturating_mul(RATIO).max(ALWAYS);
        if observed > limit {
            return Err(io::Error::other(StoreError::TooLarge { limit, observed }));
        }
        Ok((read > 0).then(|| (bytes.freeze(), (reader, came, observed))))
    })
    .boxed()
}

/// Writes all bytes of an answer down. `TooLarge` when there are more than `limit` of them, coded or decoded.
pub(crate) async fn receive(
    response: Response,
    coding: Coding,
    arrival: &mut Arrival,
    (limit, idle): (u64, Duration),
) -> Result<Blob, StoreError> {
    let mut chunks = chunks(response, idle, limit);
    if coding != Coding::Plain {
        chunks = decoded(chunks, coding);
    }
    while let Some(chunk) = chunks.next().await {
        arrival.write(chunk.map_err(broken)?).await?;
    }
    arrival.received().await
}

/// The first bytes of an answer that is no success, for its plugin to make sense of.
pub(crate) async fn excerpt(response: Response, idle: Duration, most: usize) -> Bytes {
    let mut chunks = chunks(response, idle, u64::MAX);
    let mut bytes = BytesMut::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= most {
            bytes.truncate(most);
            break;
        }
    }
    bytes.freeze()
}

fn broken(error: io::Error) -> StoreError {
    match error.downcast::<StoreError>() {
        Ok(own) => own,
        Err(error) => StoreError::BrokenOff(error.to_string()),
    }
}

/// Whether the bytes are what they must be. `BrokenOff` says which they are not.
pub(crate) async fn verify(blob: &Blob, expected: &[Digest]) -> Result<(), StoreError> {
    for digest in expected {
        let found = blob.digest(digest.algorithm).await?;
        if found != *digest {
            return Err(StoreError::BrokenOff(format!(
                "the upstream sent {found} where {digest} was expected"
            )));
        }
    }
    Ok(())
}

/// The algorithms by which bytes are summed while they come.
pub(crate) fn algorithms(expected: &[Digest]) -> Vec<Algorithm> {
    expected.iter().map(|digest| digest.algorithm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(value: &str, path: &str, as_it_is: bool) -> Option<Coding> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, value.parse().unwrap());
        Coding::of(&headers, path, as_it_is).ok()
    }

    #[test]
    fn codings_are_undone_but_for_files_that_are_packed_themselves() {
        assert_eq!(Coding::of(&HeaderMap::new(), "/a", false).unwrap(), Coding::Plain);
        assert_eq!(coding("gzip", "/a.json", false), Some(Coding::Gzip));
        assert_eq!(coding("GZIP", "/a-1.0.tar.gz", false), Some(Coding::Gzip));
        assert_eq!(coding("gzip", "/a-1.0.tar.gz", true), Some(Coding::Plain));
        assert_eq!(coding("gzip", "/a.whl", true), Some(Coding::Gzip));
        assert_eq!(coding("br", "/a", false), None);
    }
}
