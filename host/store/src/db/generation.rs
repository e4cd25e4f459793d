//! Detection of commits without SQL. The header of SQLite's WAL index changes with each commit of
//! any process (<https://sqlite.org/walformat.html>, "The WAL-Index Header").

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use super::open_files::opened;
use crate::error::StoreError;

const HEADER: usize = 48;
/// Time in ms after a check for which the WAL index is assumed to exist still. SQLite removes the
/// file only when no connection to the database is open. This process always has one open, unless
/// the disk fails.
const THERE_MS: u64 = 10;
/// Origin of the millisecond counts.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// State of the database at a moment. Two states are equal only if nothing was committed in
/// between. A state that could not be read is not equal to any state, not even itself.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// `None` if it could not be read.
    header: Option<[u8; HEADER]>,
    /// Number of commits by this process.
    commits: u64,
}

impl PartialEq for Generation {
    fn eq(&self, other: &Generation) -> bool {
        self.header.is_some() && self.header == other.header && self.commits == other.commits
    }
}

impl Generation {
    /// Returns whether exactly one commit, by this process, happened since `before`. `before` was
    /// read while no other process could write.
    pub(crate) fn is_next_after(&self, before: &Generation) -> bool {
        self.follows(before) && self.commits == before.commits.wrapping_add(1)
    }

    /// Returns whether exactly one commit, by any process, happened since `before`.
    pub(crate) fn follows(&self, before: &Generation) -> bool {
        let (Some(now), Some(then)) = (self.changes(), before.changes()) else { return false };
        now == then.wrapping_add(1)
    }

    /// Returns whether it is older than `other`, judged by this process's own commits.
    pub(crate) fn is_older_than(&self, other: &Generation) -> bool {
        self.commits < other.commits
    }

    /// Returns the header's commit count: its third word, in native byte order.
    fn changes(&self) -> Option<u32> {
        let word = self.header.as_ref()?.get(8..12)?;
        word.try_into().ok().map(u32::from_ne_bytes)
    }

    /// Creates a state with this number of commits of all processes and of this one.
    #[cfg(test)]
    pub(crate) fn of(changes: u32, commits: u64) -> Generation {
        let mut header = [0; HEADER];
        header[8..12].copy_from_slice(&changes.to_ne_bytes());
        Generation { header: Some(header), commits }
    }

    pub(super) fn read(header: Option<&WalIndex>, commits: u64) -> Generation {
        Generation { header: header.and_then(WalIndex::read), commits }
    }
}

/// Pages in the log, and the number of them that a checkpoint has already copied into the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalState {
    pages: u32,
    copied: u32,
}

impl WalState {
    /// Returns the number of pages that are only in the log.
    pub(super) fn left(self) -> u32 {
        self.pages.saturating_sub(self.copied)
    }
}

/// WAL index, open for reading.
#[derive(Clone)]
pub(super) struct WalIndex(Arc<IndexFile>);

struct IndexFile {
    file: Arc<File>,
    /// Millisecond in which the file was last known to exist.
    last_check: AtomicU64,
}

impl WalIndex {
    /// Opens the WAL index of this database file. Returns `None` if it does not exist, which only
    /// costs speed.
    pub(super) fn open(file: &Path) -> Result<Option<WalIndex>, StoreError> {
        let mut path = file.as_os_str().to_owned();
        path.push("-shm");
        Ok(opened(Path::new(&path)).map_err(StoreError::database)?.map(WalIndex::of))
    }

    fn of(file: Arc<File>) -> WalIndex {
        WalIndex(Arc::new(IndexFile { file, last_check: AtomicU64::new(0) }))
    }

    /// Returns the state of the log; `None` if it cannot be read consistently now.
    pub(super) fn log(&self) -> Option<WalState> {
        let header = self.read()?;
        let word = |bytes: Option<&[u8]>| bytes?.try_into().ok().map(u32::from_ne_bytes);
        let mut copied = [0; 4];
        self.0.file.read_exact_at(&mut copied, 2 * HEADER as u64).ok()?;
        Some(WalState { pages: word(header.get(16..20))?, copied: u32::from_ne_bytes(copied) })
    }

    /// Reads the header. Returns `None` during a write, when its two copies differ. Also returns
    /// `None` if SQLite has removed the file after the last connection closed: a new file may exist
    /// then, and this open one no longer changes.
    fn read(&self) -> Option<[u8; HEADER]> {
        self.0.is_there().then_some(())?;
        let mut twice = [0; 2 * HEADER];
        self.0.file.read_exact_at(&mut twice, 0).ok()?;
        let (first, second) = twice.split_first_chunk::<HEADER>()?;
        (first.as_slice() == second).then_some(*first)
    }
}

impl IndexFile {
    /// Returns whether the file still exists, as checked at most [`THERE_MS`] ago. Checking costs
    /// as much as reading the header.
    fn is_there(&self) -> bool {
        // Never 0, which means that the file was not checked yet.
        let now = u64::try_from(BEGINNING.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let last_check = self.last_check.load(Ordering::Relaxed);
        if last_check != 0 && now.saturating_sub(last_check) < THERE_MS {
            return true;
        }
        let there = self.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
        if there {
            self.last_check.store(now, Ordering::Relaxed);
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shm");
        std::fs::write(&path, [0; 2 * HEADER]).unwrap();
        let header = WalIndex(Arc::new(IndexFile {
            file: File::open(&path).unwrap().into(),
            last_check: AtomicU64::new(0),
        }));
        assert!(header.read().is_some());
        std::fs::remove_file(&path).unwrap();
        let removed = Instant::now();
        while header.read().is_some() {
            assert!(removed.elapsed().as_millis() < 1000, "still read");
        }
        assert!(header.read().is_none());
    }
}
