//! What is remembered of a piece that a plugin made: its bytes, and what was read for them.

use std::ops::Bound;
use std::rc::Rc;

/// What a piece belongs to: format, repository, settings, name.
pub(crate) type PieceKey = (String, String, String, String);

/// A piece, and what was read while it was made.
pub(crate) struct MemoryPiece {
    pub(crate) note: Rc<[u8]>,
    pub(crate) bytes: Rc<[u8]>,
    pub(crate) reads: Vec<Read>,
}

/// Something that was read, and what was found.
#[derive(Clone)]
pub(crate) enum Read {
    /// A record, and its revision where it was there.
    Key(String, Option<u64>),
    /// Keys of a range, and their revisions.
    Range(KeyRange, Vec<(String, u64)>),
    /// A blob that was held.
    Blob(String),
}

/// Keys that begin with a prefix, from somewhere on and perhaps up to one of them.
#[derive(Clone)]
pub(crate) struct KeyRange {
    pub(crate) prefix: String,
    pub(crate) from: Bound<String>,
    pub(crate) last: Option<String>,
}

/// What is noted while a piece is made.
pub(crate) struct Noted {
    pub(crate) repository: String,
    pub(crate) reads: Vec<Read>,
    /// Whether something was used that no commit tells a change of.
    pub(crate) more: bool,
}
