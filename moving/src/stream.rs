//! Streams from a source to a target, verified while they pass. A stream holds back its last piece
//! until the digests match, so that wrong content never arrives completely.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use tokio_util::io::ReaderStream;

use crate::digests::{Digests, Hasher};
use crate::error::MoveError;

/// An open file or response body.
pub(crate) struct ByteSource {
    pub(crate) stream: BoxStream<'static, Result<Bytes, MoveError>>,
    /// Length in bytes, if it is known.
    pub(crate) length: Option<u64>,
    /// Time of the last change, if the source states it.
    pub(crate) modified: Option<Timestamp>,
}

impl ByteSource {
    /// Reads everything, up to this number of bytes.
    pub(crate) async fn gather(mut self, most: usize) -> Result<Bytes, MoveError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.stream.next().await {
            bytes.extend_from_slice(&piece?);
            if bytes.len() > most {
                return Err(MoveError::Refused(format!("a document is larger than {most} bytes")));
            }
        }
        Ok(bytes.into())
    }
}

/// Opens a file for reading.
pub(crate) async fn open_file(path: &Path) -> Result<ByteSource, MoveError> {
    let action = || format!("read {}", path.display());
    let file = tokio::fs::File::open(path).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            MoveError::Missing(format!("the file {} does not exist", path.display()))
        }
        _ => MoveError::local(&action(), &error),
    })?;
    let metadata = file.metadata().await.map_err(|error| MoveError::local(&action(), &error))?;
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let name = path.display().to_string();
    let stream = ReaderStream::with_capacity(file, 256 << 10);
    let stream = stream.map_err(move |error| MoveError::local(&format!("read {name}"), &error)).boxed();
    Ok(ByteSource { stream, length: Some(metadata.len()), modified })
}

/// Digests and size of a stream that was received completely.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) digests: Digests,
    pub(crate) size: u64,
}

impl Measured {
    /// The SHA-256 in hex.
    pub(crate) fn sha256(&self) -> Option<String> {
        self.digests.sha256.clone()
    }
}

/// Result of verifying a stream. It is set before the last piece is passed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamVerdict(Arc<Mutex<Option<Result<Measured, String>>>>);

/// Reason why a stream ended early.
enum StreamError {
    Broken(MoveError),
    Wrong(String),
}

impl StreamVerdict {
    fn set(&self, verdict: Result<Measured, String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
    }

    /// The digests and the size if the stream was correct, or the error if it was not. `None`
    /// before the end of the stream.
    pub(crate) fn get(&self) -> Option<Result<Measured, MoveError>> {
        let verdict = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        verdict.map(|verdict| verdict.map_err(MoveError::Refused))
    }
}

/// Returns a stream that verifies stated digests and a stated size while it is read, and the
/// verdict. If digests or size differ, the stream ends with an error before its last piece.
pub(crate) fn verified(
    opened: ByteSource,
    stated: Digests,
    size: Option<u64>,
) -> (BoxStream<'static, std::io::Result<Bytes>>, StreamVerdict) {
    let verdict = StreamVerdict::default();
    let size = size.or(opened.length);
    let state = VerifyingStream {
        hasher: Some(Hasher::for_comparison(&stated)),
        stream: opened.stream,
        stated,
        size,
        verdict: verdict.clone(),
        held: None,
        passed: 0,
    };
    let stream = futures::stream::try_unfold(state, |mut state| async move {
        match state.next().await {
            Ok(Some(piece)) => Ok(Some((piece, state))),
            Ok(None) => Ok(None),
            Err(StreamError::Broken(fault)) => Err(std::io::Error::other(fault)),
            Err(StreamError::Wrong(text)) => Err(std::io::Error::other(text)),
        }
    });
    (stream.boxed(), verdict)
}

struct VerifyingStream {
    stream: BoxStream<'static, Result<Bytes, MoveError>>,
    hasher: Option<Hasher>,
    stated: Digests,
    size: Option<u64>,
    verdict: StreamVerdict,
    /// The last received piece, which is held back.
    held: Option<Bytes>,
    passed: u64,
}

impl VerifyingStream {
    async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        loop {
            match self.stream.next().await {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    self.passed += piece.len() as u64;
                    if let Some(hasher) = &mut self.hasher {
                        hasher.update(&piece);
                    }
                    if let Some(before) = self.held.replace(piece) {
                        return Ok(Some(before));
                    }
                }
                Some(Err(fault)) => return Err(StreamError::Broken(fault)),
                None => {
                    self.judge()?;
                    return Ok(self.held.take());
                }
            }
        }
    }

    fn judge(&mut self) -> Result<(), StreamError> {
        let Some(hasher) = self.hasher.take() else { return Ok(()) };
        let digests = hasher.finish();
        let wrong = match (self.size, self.stated.agree(&digests)) {
            (Some(size), _) if size != self.passed => {
                Some(format!("the source states {size} bytes, but {} were received", self.passed))
            }
            (_, Some(false)) => Some(format!("the source is damaged: {}", self.stated.difference(&digests))),
            _ => None,
        };
        match wrong {
            Some(text) => {
                self.verdict.set(Err(text.clone()));
                Err(StreamError::Wrong(text))
            }
            None => {
                self.verdict.set(Ok(Measured { digests, size: self.passed }));
                Ok(())
            }
        }
    }
}

/// Reads and verifies a whole stream. Meant for comparing content for which no digest is stated.
pub(crate) async fn measure(
    opened: ByteSource,
    stated: Digests,
    size: Option<u64>,
) -> Result<Measured, MoveError> {
    let (mut stream, verdict) = verified(opened, stated, size);
    let broken = loop {
        match stream.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    match (verdict.get(), broken) {
        (Some(verdict), _) => verdict,
        (None, Some(error)) => Err(MoveError::Unavailable(error.to_string(), None)),
        (None, None) => Err(MoveError::Unavailable("the source ended early".to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::sha256;

    fn opened(pieces: &'static [&'static str]) -> ByteSource {
        let stream =
            futures::stream::iter(pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))));
        ByteSource { stream: stream.boxed(), length: None, modified: None }
    }

    async fn pieces(
        stated: Digests,
        size: Option<u64>,
        of: &'static [&'static str],
    ) -> (Vec<String>, bool, bool) {
        let (stream, verdict) = verified(opened(of), stated, size);
        let all: Vec<_> = stream.collect().await;
        let whole = all.iter().all(Result::is_ok);
        let got =
            all.into_iter().flatten().map(|piece| String::from_utf8_lossy(&piece).into_owned()).collect();
        (got, whole, matches!(verdict.get(), Some(Ok(_))))
    }

    #[tokio::test]
    async fn wrong_content_never_arrives_completely() {
        let right = Digests::sha256(&sha256(b"abc"));
        assert_eq!(
            pieces(right.clone(), Some(3), &["a", "", "bc"]).await,
            (vec!["a".into(), "bc".into()], true, true)
        );
        assert_eq!(pieces(Digests::default(), None, &[]).await, (vec![], true, true));
        let wrong = Digests::sha256(&sha256(b"abd"));
        assert_eq!(pieces(wrong, None, &["a", "b", "c"]).await, (vec!["a".into(), "b".into()], false, false));
        assert_eq!(pieces(right.clone(), Some(4), &["abc"]).await, (vec![], false, false));
        assert!(measure(opened(&["ab"]), right, None).await.is_err());
    }
}
