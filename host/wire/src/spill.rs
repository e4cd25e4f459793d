//! Documents that wait for their clients in files, where memory has no room for them. The files have no names: nothing is left of
//! them when the answer or the program ends.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use packhouse_store::StoreError;
use tokio::task::spawn_blocking;

/// Bytes of all such files.
const MOST: u64 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    most: u64,
    bytes: Arc<AtomicU64>,
}

impl Spill {
    /// For files in this folder, which holds none yet.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), most: MOST, bytes: Arc::default() }
    }

    /// Writes a document to a file. Returns it in pieces of so many bytes. `Unavailable` where the disk or the bound leaves no room.
    pub async fn write(
        &self,
        parts: Vec<Bytes>,
        piece: usize,
    ) -> Result<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>, StoreError> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let lease = self.lease(length)?;
        let folder = self.folder.clone();
        let write = move || {
            let mut file = tempfile::tempfile_in(folder)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            Ok(file)
        };
        let file = spawn_blocking(write).await.map_err(io::Error::other).flatten().map_err(unavailable)?;
        metrics::counter!("packhouse_answers_spilled_total").increment(1);
        let waiting = Waiting { file: Arc::new(file), at: 0, length, _lease: lease };
        Ok(stream::try_unfold(waiting, move |waiting| waiting.next(piece)))
    }

    fn lease(&self, bytes: u64) -> Result<Lease, StoreError> {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        let lease = Lease { all: Arc::clone(&self.bytes), bytes };
        if before.saturating_add(bytes) > self.most {
            return Err(unavailable(io::Error::other("as many answers wait for their clients as may")));
        }
        Ok(lease)
    }
}

/// A file and how far it was read.
struct Waiting {
    file: Arc<File>,
    at: u64,
    length: u64,
    _lease: Lease,
}

impl Waiting {
    async fn next(mut self, piece: usize) -> Result<Option<(Bytes, Waiting)>, StoreError> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let (file, at, size) = (Arc::clone(&self.file), self.at, left.min(piece));
        if size == 0 {
            return Ok(None);
        }
        let read = move || {
            let mut bytes = BytesMut::zeroed(size);
            file.read_exact_at(&mut bytes, at)?;
            Ok(bytes.freeze())
        };
        let bytes = spawn_blocking(read).await.map_err(io::Error::other).flatten().map_err(unavailable)?;
        self.at += size as u64;
        Ok(Some((bytes, self)))
    }
}

/// What a file has of the bound, given back when this is dropped.
#[derive(Debug)]
struct Lease {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable {
        what: "the folder of answers that wait for their clients",
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt as _;

    #[tokio::test]
    async fn a_document_comes_back_in_pieces_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill { most: 10, ..Spill::in_folder(folder.path()) };
        let parts = || vec![Bytes::from_static(b"hello"), Bytes::from_static(b" you")];
        let pieces = spill.write(parts(), 4).await.unwrap();
        assert!(spill.write(parts(), 4).await.is_err(), "there is room for one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        assert_eq!(pieces, ["hell", "o yo", "u"]);
        assert_eq!(spill.bytes.load(Ordering::Relaxed), 0);
        assert!(spill.write(parts(), 4).await.is_ok());
        assert!(Spill::in_folder(&folder.path().join("missing")).write(parts(), 4).await.is_err());
    }
}
