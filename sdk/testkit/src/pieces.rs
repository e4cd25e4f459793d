//! Cached pieces: their bytes, and the reads that they depend on.

use std::ops::Bound;
use std::rc::Rc;

/// Key of a piece: format, repository, settings, name.
pub(crate) type PieceKey = (String, String, String, String);

/// Piece with the reads that it depends on.
pub(crate) struct MemoryPiece {
    pub(crate) note: Rc<[u8]>,
    pub(crate) bytes: Rc<[u8]>,
    pub(crate) reads: Vec<TrackedRead>,
}

/// Read with its result.
#[derive(Clone)]
pub(crate) enum TrackedRead {
    /// A record, and its revision if it existed.
    Key(String, Option<u64>),
    /// Keys of a range, and their revisions.
    Range(KeyRange, Vec<(String, u64)>),
    /// A blob that was present.
    Blob(String),
}

/// Range of the keys with a prefix, from a start, and up to a last key if there is one.
#[derive(Clone)]
pub(crate) struct KeyRange {
    pub(crate) prefix: String,
    pub(crate) from: Bound<String>,
    pub(crate) last: Option<String>,
}

/// Reads that were recorded while a piece is made.
pub(crate) struct RecordedReads {
    pub(crate) repository: String,
    pub(crate) reads: Vec<TrackedRead>,
    /// True if the call used something that can change without a commit.
    pub(crate) untracked: bool,
}
