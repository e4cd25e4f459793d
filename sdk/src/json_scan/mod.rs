//! JSON that is too large to be parsed: what lies where in it ([`outline`]), the elements of a long array ([`Elements`]), and the
//! document without its longest strings ([`ScanReader`]).
//!
//! All pass over the bytes once, in windows, and know strings and brackets and no more. What they find is a stranger's text until
//! it has been parsed.

mod elements;
mod outline;
mod place;
mod reader;
mod shortening;

pub use elements::Elements;
pub use outline::{Member, Outline, members, outline};
pub use reader::{MemberPath, ScanError, ScanReader, ScanRules};

use serde::{Deserialize, Serialize};

/// Where something lies in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset of its first byte.
    pub start: u64,
    /// Offset behind its last byte.
    pub end: u64,
}
