//! JSON documents that are too large to parse: the positions of members ([`outline`]), the elements
//! of a long array ([`Elements`]), and the document without its longest strings ([`ScanReader`]).
//!
//! Each of the three makes one pass over the bytes, in windows, and only recognises strings and
//! brackets. The returned bytes are unverified until the caller parses them.

mod elements;
mod outline;
mod position;
mod reader;
mod shortening;

pub use elements::Elements;
pub use outline::{Member, Outline, members, outline};
pub use reader::{MemberPath, ScanError, ScanReader, ScanRules};

use serde::{Deserialize, Serialize};

/// Byte range in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}
