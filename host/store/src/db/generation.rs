//! Telling without SQL whether anything was committed: SQLite's WAL index, whose header changes with each commit of any
//! process (<https://sqlite.org/walformat.html>, "The WAL-Index Header").

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use super::open_files::opened;
use crate::error::StoreError;
use crate::sqlite::sqlite_options;

const HEADER: usize = 48;

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
        let (Some(now), Some(then)) = (self.changes(), before.changes()) else { return false };
        now == then.wrapping_add(1) && self.commits == before.commits.wrapping_add(1)
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
pub(super) struct Header(Arc<File>);

impl Header {
    /// That of the database at this address; none when there is none, which costs speed and nothing else.
    pub(super) fn open(url: &str) -> Result<Option<Header>, StoreError> {
        let mut path = sqlite_options(url)?.get_filename().as_os_str().to_owned();
        path.push("-shm");
        Ok(opened(Path::new(&path)).map_err(StoreError::database)?.map(Header))
    }

    /// What the log holds; none when it cannot be told at the moment.
    pub(super) fn log(&self) -> Option<Log> {
        let header = self.read()?;
        let word = |bytes: Option<&[u8]>| bytes?.try_into().ok().map(u32::from_ne_bytes);
        let mut copied = [0; 4];
        self.0.read_exact_at(&mut copied, 2 * HEADER as u64).ok()?;
        Some(Log { pages: word(header.get(16..20))?, copied: u32::from_ne_bytes(copied) })
    }

    /// The header, unless it is being written: it stands there twice, and the two differ then. Nor when the file was removed,
    /// as the last connection does that closes: there is another then, which this one says nothing of.
    fn read(&self) -> Option<[u8; HEADER]> {
        self.0.metadata().ok().filter(|metadata| metadata.nlink() > 0)?;
        let mut twice = [0; 2 * HEADER];
        self.0.read_exact_at(&mut twice, 0).ok()?;
        let (first, second) = twice.split_first_chunk::<HEADER>()?;
        (first.as_slice() == second).then_some(*first)
    }
}
