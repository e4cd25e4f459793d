//! Receives the body of an upstream's response: decodes it, limits its size, writes it to the store
//! and verifies its digests.

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

use super::error::UpstreamError;

/// Number of bytes to decode at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
    Deflate,
    Zstd,
}

impl Coding {
    /// Parses `Content-Encoding`. `Unavailable` if the coding is unknown. If the plugin requested
    /// the bytes unchanged (`as_it_is`), compressed files are not decoded, because some servers
    /// declare a file's own compression as content coding.
    pub(crate) fn of(headers: &HeaderMap, path: &str, as_it_is: bool) -> Result<Coding, UpstreamError> {
        let name = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?"));
        let packed = [".gz", ".tgz", ".zst", ".svgz"].iter().any(|end| path.ends_with(end));
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Coding::Plain),
            _ if packed && as_it_is => Ok(Coding::Plain),
            "gzip" | "x-gzip" => Ok(Coding::Gzip),
            "deflate" => Ok(Coding::Deflate),
            "zstd" => Ok(Coding::Zstd),
            other => Err(UpstreamError::Unavailable(format!(
                "the upstream uses the unknown content coding {other:?}"
            ))),
        }
    }
}

/// Returns the length that the response declares, if it is the length of the decoded body.
pub(crate) fn declared(headers: &HeaderMap, coding: Coding) -> Option<u64> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()?;
    (coding == Coding::Plain).then_some(length)
}

type BodyStream = BoxStream<'static, io::Result<Bytes>>;

/// Streams the received bytes. Fails if no byte arrives for `idle`, or if more than `limit` bytes
/// arrive.
fn chunks(response: Response, idle: Duration, limit: u64) -> BodyStream {
    stream::try_unfold((response, 0_u64), move |(mut response, before)| async move {
        let late = |_| io::Error::other("the upstream stopped sending");
        let chunk = tokio::time::timeout(idle, response.chunk()).await.map_err(late)?;
        let chunk = chunk.map_err(|error| io::Error::other(UpstreamError::of_client(error)))?;
        let Some(chunk) = chunk else { return Ok(None) };
        let observed = before + chunk.len() as u64;
        if observed > limit {
            return Err(io::Error::other(StoreError::TooLarge { limit, observed }));
        }
        Ok(Some((chunk, (response, observed))))
    })
    .boxed()
}

/// Maximum factor by which decoding may enlarge a body.
const RATIO: u64 = 100;
/// Decoded size in bytes that is allowed whatever the factor is.
const ALWAYS: u64 = 64 << 20;

/// Streams the decoded bytes. Fails if they exceed both [`RATIO`] and [`ALWAYS`].
fn decoded(chunks: BodyStream, coding: Coding) -> BodyStream {
    let arrived = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&arrived);
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
    stream::try_unfold((reader, arrived, 0_u64), |(mut reader, arrived, before)| async move {
        let mut bytes = BytesMut::with_capacity(CHUNK);
        let read = reader.read_buf(&mut bytes).await?;
        let observed = before + read as u64;
        let limit = arrived.load(Ordering::Relaxed).saturating_mul(RATIO).max(ALWAYS);
        if observed > limit {
            return Err(io::Error::other(StoreError::TooLarge { limit, observed }));
        }
        Ok((read > 0).then(|| (bytes.freeze(), (reader, arrived, observed))))
    })
    .boxed()
}

/// Limits for receiving a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Maximum size in bytes, encoded and decoded.
    pub max_bytes: u64,
    /// Maximum time without receiving a byte.
    pub idle: Duration,
}

/// Writes a whole body to the store. `TooLarge` if it exceeds the limit.
pub(crate) async fn receive(
    response: Response,
    coding: Coding,
    arrival: &mut Arrival,
    limits: BodyLimits,
) -> Result<Blob, StoreError> {
    let mut chunks = chunks(response, limits.idle, limits.max_bytes);
    if coding != Coding::Plain {
        chunks = decoded(chunks, coding);
    }
    while let Some(chunk) = chunks.next().await {
        arrival.write(chunk.map_err(broken)?).await?;
    }
    arrival.received().await
}

/// Reads at most `most` bytes of an unsuccessful response, for the plugin.
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

/// Compares a blob with the expected digests. `BrokenOff` names the first mismatch.
pub(crate) async fn verify(blob: &Blob, expected: &[Digest]) -> Result<(), StoreError> {
    for digest in expected {
        let found = blob.digest(digest.algorithm).await?;
        if found != *digest {
            return Err(StoreError::BrokenOff(format!(
                "the upstream sent {found}, but {digest} was expected"
            )));
        }
    }
    Ok(())
}

/// Returns the algorithms for hashing bytes while they are received.
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
    fn bodies_are_decoded_unless_the_file_itself_is_compressed() {
        assert_eq!(Coding::of(&HeaderMap::new(), "/a", false).unwrap(), Coding::Plain);
        assert_eq!(coding("gzip", "/a.json", false), Some(Coding::Gzip));
        assert_eq!(coding("GZIP", "/a-1.0.tar.gz", false), Some(Coding::Gzip));
        assert_eq!(coding("gzip", "/a-1.0.tar.gz", true), Some(Coding::Plain));
        assert_eq!(coding("gzip", "/a.whl", true), Some(Coding::Gzip));
        assert_eq!(coding("br", "/a", false), None);
    }
}
