//! Bytes on their way from a source to a target: in pieces, hashed while they pass, and the last piece held back until the digests are
//! right, so that what is wrong never arrives whole.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use tokio_util::io::ReaderStream;

use crate::digests::{Digests, Hasher};
use crate::fault::Fault;

/// Something that is being read.
pub(crate) struct Opened {
    pub(crate) stream: BoxStream<'static, Result<Bytes, Fault>>,
    /// Bytes, where that is known.
    pub(crate) length: Option<u64>,
    /// When it was last changed, as far as the source says.
    pub(crate) modified: Option<Timestamp>,
}

impl Opened {
    /// Reads all of it, where it has at most so many bytes.
    pub(crate) async fn gather(mut self, most: usize) -> Result<Bytes, Fault> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.stream.next().await {
            bytes.extend_from_slice(&piece?);
            if bytes.len() > most {
                return Err(Fault::Refused(format!(
                    "a document is larger than the {most} bytes that it may have"
                )));
            }
        }
        Ok(bytes.into())
    }
}

/// Begins to read a file.
pub(crate) async fn open_file(path: &Path) -> Result<Opened, Fault> {
    let said = || format!("read {}", path.display());
    let file = tokio::fs::File::open(path).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::Missing(format!("there is no file {}", path.display())),
        _ => Fault::local(&said(), &error),
    })?;
    let metadata = file.metadata().await.map_err(|error| Fault::local(&said(), &error))?;
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let name = path.display().to_string();
    let stream = ReaderStream::with_capacity(file, 256 << 10);
    let stream = stream.map_err(move |error| Fault::local(&format!("read {name}"), &error)).boxed();
    Ok(Opened { stream, length: Some(metadata.len()), modified })
}

/// What came, once all of it did.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) digests: Digests,
    pub(crate) size: u64,
}

impl Came {
    /// The SHA-256 in hex.
    pub(crate) fn sha256(&self) -> Option<String> {
        self.digests.sha256.clone()
    }
}

/// What is known of a stream at its end: set before its last piece is handed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict(Arc<Mutex<Option<Result<Came, String>>>>);

/// How a stream ended that is no good.
enum End {
    Broken(Fault),
    Wrong(String),
}

impl Verdict {
    fn set(&self, verdict: Result<Came, String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
    }

    /// What came, where all of it did and it was right; the fault where it was wrong; none where it has not come to its end.
    pub(crate) fn get(&self) -> Option<Result<Came, Fault>> {
        let verdict = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        verdict.map(|verdict| verdict.map_err(Fault::Refused))
    }
}

/// What is read, compared with what is stated of it. The stream ends in an error where they differ, before its last piece.
pub(crate) fn verified(
    opened: Opened,
    stated: Digests,
    size: Option<u64>,
) -> (BoxStream<'static, std::io::Result<Bytes>>, Verdict) {
    let verdict = Verdict::default();
    let size = size.or(opened.length);
    let state = Passing {
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
            Err(End::Broken(fault)) => Err(std::io::Error::other(fault)),
            Err(End::Wrong(text)) => Err(std::io::Error::other(text)),
        }
    });
    (stream.boxed(), verdict)
}

struct Passing {
    stream: BoxStream<'static, Result<Bytes, Fault>>,
    hasher: Option<Hasher>,
    stated: Digests,
    size: Option<u64>,
    verdict: Verdict,
    /// The piece before the one that is waited for.
    held: Option<Bytes>,
    passed: u64,
}

impl Passing {
    async fn next(&mut self) -> Result<Option<Bytes>, End> {
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
                Some(Err(fault)) => return Err(End::Broken(fault)),
                None => {
                    self.judge()?;
                    return Ok(self.held.take());
                }
            }
        }
    }

    fn judge(&mut self) -> Result<(), End> {
        let Some(hasher) = self.hasher.take() else { return Ok(()) };
        let digests = hasher.finish();
        let wrong = match (self.size, self.stated.agree(&digests)) {
            (Some(size), _) if size != self.passed => {
                Some(format!("the source states {size} bytes, but {} came", self.passed))
            }
            (_, Some(false)) => Some(format!("the source is damaged: {}", self.stated.difference(&digests))),
            _ => None,
        };
        match wrong {
            Some(text) => {
                self.verdict.set(Err(text.clone()));
                Err(End::Wrong(text))
            }
            None => {
                self.verdict.set(Ok(Came { digests, size: self.passed }));
                Ok(())
            }
        }
    }
}

/// Reads all of it and answers what came: for a comparison of bytes that nobody states a digest of.
pub(crate) async fn measure(opened: Opened, stated: Digests, size: Option<u64>) -> Result<Came, Fault> {
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
        (None, Some(error)) => Err(Fault::Away(error.to_string(), None)),
        (None, None) => Err(Fault::Away("the source broke off".to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::sha256;

    fn opened(pieces: &'static [&'static str]) -> Opened {
        let stream =
            futures::stream::iter(pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))));
        Opened { stream: stream.boxed(), length: None, modified: None }
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
    async fn what_is_wrong_never_arrives_whole() {
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
