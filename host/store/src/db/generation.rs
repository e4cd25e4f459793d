//! Telling without SQL whether anything was committed: SQLite's WAL index, whose header changes with each commit of any
//! process (<https://sqlite.org/walformat.html>, "The WAL-Index Header").

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use super::open_files::opened;
use crate::error::StoreError;

const HEADER: usize = 48;
/// For how many milliseconds a file that was there counts as there. It goes only when no connection to the database is open, and
/// this process has one at all times unless the disk fails.
const THERE_MS: u64 = 10;
/// What the milliseconds are counted from.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The state of the database at a moment. Two are equal only when nothing was committed in between; one that could not be read
/// equals none, itself included.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// None when it could not be read.
    header: Option<[u8; HEADER]>,
    /// Commits by this process.
    commits: u64,
}

impl PartialEq for Generation {
    fn eq(&self, other: &Generation) -> bool {
        self.header.is_some() && self.header == other.header && self.commits == other.commits
    }
}

impl Generation {
    /// Whether one commit, by this process, is all that lies between `before` and this. `before` was taken while nobody else
    /// could write.
    pub(crate) fn is_next_after(&self, before: &Generation) -> bool {
        self.follows(before) && self.commits == before.commits.wrapping_add(1)
    }

    /// Whether one commit, of whichever process, is all that lies between `before` and this.
    pub(crate) fn follows(&self, before: &Generation) -> bool {
        let (Some(now), Some(then)) = (self.changes(), before.changes()) else { return false };
        now == then.wrapping_add(1)
    }

    /// Whether it is from before `other`, as far as this process's own commits tell.
    pub(crate) fn is_older_than(&self, other: &Generation) -> bool {
        self.commits < other.commits
    }

    /// The header's count of commits: its third word, in the byte order of the machine.
    fn changes(&self) -> Option<u32> {
        let word = self.header.as_ref()?.get(8..12)?;
        word.try_into().ok().map(u32::from_ne_bytes)
    }

    /// After so many commits of all processes, and so many of this one.
    #[cfg(test)]
    pub(crate) fn of(changes: u32, commits: u64) -> Generation {
        let mut header = [0; HEADER];
        header[8..12].copy_from_slice(&changes.to_ne_bytes());
        Generation { header: Some(header), commits }
    }

    pub(super) fn read(header: Option<&Header>, commits: u64) -> Generation {
        Generation { header: header.and_then(Header::read), commits }
    }
}

/// Pages in the log, and how many of the first of them a checkpoint has copied into the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pages: u32,
    copied: u32,
}

impl Log {
    /// Pages that are in the log alone.
    pub(super) fn left(self) -> u32 {
        self.pages.saturating_sub(self.copied)
    }
}

/// The WAL index, open for reading.
#[derive(Clone)]
pub(super) struct Header(Arc<Open>);

struct Open {
    file: Arc<File>,
    /// The millisecond in which the file was last seen to be there.
    seen: AtomicU64,
}

impl Header {
    /// That of the database in this file; none when there is none, which costs speed and nothing else.
    pub(super) fn open(file: &Path) -> Result<Option<Header>, StoreError> {
        let mut path = file.as_os_str().to_owned();
        path.push("-shm");
        Ok(opened(Path::new(&path)).map_err(StoreError::database)?.map(Header::of))
    }

    fn of(file: Arc<File>) -> Header {
        Header(Arc::new(Open { file, seen: AtomicU64::new(0) }))
    }

    /// What the log holds; none when it cannot be told at the moment.
    pub(super) fn log(&self) -> Option<Log> {
        let header = self.read()?;
        let word = |bytes: Option<&[u8]>| bytes?.try_into().ok().map(u32::from_ne_bytes);
        let mut copied = [0; 4];
        self.0.file.read_exact_at(&mut copied, 2 * HEADER as u64).ok()?;
        Some(Log { pages: word(header.get(16..20))?, copied: u32::from_ne_bytes(copied) })
    }

    /// The header, unless it is being written: it stands there twice, and the two differ then. Nor when the file was removed,
    /// as the last connection does that closes: there is another then, which this one says nothing of.
    fn read(&self) -> Option<[u8; HEADER]> {
        self.0.is_there().then_some(())?;
        let mut twice = [0; 2 * HEADER];
        self.0.file.read_exact_at(&mut twice, 0).ok()?;
        let (first, second) = twice.split_first_chunk::<HEADER>()?;
        (first.as_slice() == second).then_some(*first)
    }
}

impl Open {
    /// Whether the file has not been removed, as it was seen at most [`THERE_MS`] ago: a look costs as much as the reading.
    fn is_there(&self) -> bool {
        // Never 0, which says that nobody has looked yet.
        let now = u64::try_from(BEGINNING.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let seen = self.seen.load(Ordering::Relaxed);
        if seen != 0 && now.saturating_sub(seen) < THERE_MS {
            return true;
        }
        let there = self.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
        if there {
            self.seen.store(now, Ordering::Relaxed);
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
        let header =
            Header(Arc::new(Open { file: File::open(&path).unwrap().into(), seen: AtomicU64::new(0) }));
        assert!(header.read().is_some());
        std::fs::remove_file(&path).unwrap();
        let removed = Instant::now();
        while header.read().is_some() {
            assert!(removed.elapsed().as_millis() < 1000, "still read");
        }
        assert!(header.read().is_none());
    }
}
