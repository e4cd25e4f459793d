//! Streaming of a file in pieces. Pieces in the page cache are read at once, without another
//! thread. Pieces on the disk are read ahead on another thread.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::task::{JoinHandle, spawn_blocking};

use super::fs::BlobFile;
use crate::error::StoreError;

/// Number of pieces to read ahead after a page cache miss, before the cache is tried again.
const AHEAD: u32 = 16;
/// Number of buffers that a reader retains for reuse.
const SPARE: usize = 4;

/// Streams a range in pieces of `piece` bytes. The stream ends early if the file is shorter than
/// the range.
pub(super) fn pieces(
    file: Arc<BlobFile>,
    range: Range<u64>,
    piece: usize,
) -> BoxStream<'static, Result<Bytes, StoreError>> {
    let reader =
        PieceReader { file, left: range, piece, buffers: Buffers::default(), blocking: 0, ahead: None };
    stream::try_unfold(reader, PieceReader::next).boxed()
}

struct PieceReader {
    file: Arc<BlobFile>,
    left: Range<u64>,
    piece: usize,
    buffers: Buffers,
    /// Number of further pieces to read on another thread.
    blocking: u32,
    /// Next piece, being read on another thread.
    ahead: Option<JoinHandle<io::Result<Bytes>>>,
}

impl PieceReader {
    /// Returns the length of the next piece.
    fn next_length(&self) -> usize {
        let left = self.left.end.saturating_sub(self.left.start);
        self.piece.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    async fn next(mut self) -> Result<Option<(Bytes, PieceReader)>, StoreError> {
        if let Some(ahead) = self.ahead.take() {
            let bytes = ahead.await.map_err(StoreError::storage)?.map_err(StoreError::storage)?;
            self.read_ahead();
            return Ok(Some((bytes, self)));
        }
        let length = self.next_length();
        if length == 0 {
            return Ok(None);
        }
        if let Some(bytes) = self.buffers.read_cached(&self.file, self.left.start, length) {
            self.left.start += length as u64;
            return Ok(Some((bytes, self)));
        }
        self.blocking = AHEAD;
        self.read_ahead();
        Box::pin(self.next()).await
    }

    /// Starts reading the next piece on another thread, if there is one and read-ahead is active.
    fn read_ahead(&mut self) {
        let length = self.next_length();
        if length > 0 && self.blocking > 0 {
            self.blocking -= 1;
            let (file, offset) = (Arc::clone(&self.file), self.left.start);
            self.left.start += length as u64;
            self.ahead = Some(spawn_blocking(move || file.read_at(offset, length)));
        }
    }
}

/// Reusable buffers of one reader. A buffer returns here once its piece was sent. New buffers would
/// have to be zeroed for each piece.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// Returns a piece of exactly `length` bytes if it is completely in the page cache.
    fn read_cached(&self, file: &BlobFile, offset: u64, length: usize) -> Option<Bytes> {
        let mut bytes = self.spare().pop().unwrap_or_default();
        bytes.resize(length, 0);
        let mut piece = BufferedPiece { bytes, buffers: self.clone() };
        file.read_cached(&mut piece.bytes, offset).then(|| Bytes::from_owner(piece))
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct BufferedPiece {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for BufferedPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BufferedPiece {
    fn drop(&mut self) {
        let mut spare = self.buffers.spare();
        if spare.len() < SPARE {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::fs::Folder;
    use futures::TryStreamExt;

    #[tokio::test]
    async fn pieces_are_the_range() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::open(folder.path()).unwrap();
        let mut file = folder.begin().unwrap();
        let all: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        file.append(&[Bytes::from(all.clone())]).unwrap();
        let file = Arc::new(file);
        for (range, piece) in [(0..100_000, 7000), (1..99_999, 100_000), (5..5, 10), (0..100_000, 1000)] {
            let read: Vec<Bytes> =
                pieces(Arc::clone(&file), range.clone(), piece).try_collect().await.unwrap();
            let expected = &all[range.start as usize..range.end as usize];
            assert!(
                read.concat() == expected && read.iter().all(|one| one.len() <= piece),
                "{range:?} by {piece}"
            );
        }
        let beyond: Vec<Bytes> = pieces(file, 90_000..110_000, 7000).try_collect().await.unwrap();
        assert!(beyond.concat() == all[90_000..]);
    }

    #[tokio::test]
    async fn buffers_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::open(folder.path()).unwrap();
        let mut file = folder.begin().unwrap();
        file.append(&[Bytes::from(vec![1; 10_000])]).unwrap();
        let buffers = Buffers::default();
        let Some(first) = buffers.read_cached(&file, 0, 5000) else { return };
        let at = first.as_ptr();
        drop(first);
        let second = buffers.read_cached(&file, 5000, 4000).unwrap();
        assert!(second.as_ptr() == at && second.len() == 4000 && buffers.spare().is_empty());
        let held: Vec<Bytes> = (0..10).filter_map(|_| buffers.read_cached(&file, 0, 10)).collect();
        drop(held);
        assert_eq!(buffers.spare().len(), SPARE);
    }
}
