//! Zip archives that every program reads alike: one that two programs could unpack differently is refused, and so is one that grows
//! out of all proportion. Only the directory and the headers are read here; what is compressed is decoded by the host.

mod archive;
mod directory;
mod entry;
mod local_headers;
#[cfg(test)]
#[path = "../../../plugins/python/tests/wheel.rs"]
mod wheel;
mod window;

pub use archive::{Archive, Member};
use packhouse_sdk::Error;

/// An archive may unpack to so many times its size …
const RATIO: u64 = 100;
/// … and to so many bytes whatever its size, …
const ALWAYS: u64 = 64 << 20;
/// … and never to more.
const NEVER: u64 = 100 << 30;

/// Why an archive was not read.
#[derive(Debug)]
pub enum ArchiveError {
    /// Its sender's: a sentence that goes on behind the file's name.
    Refused(String),
    /// The host's.
    Host(Error),
}

impl ArchiveError {
    /// Its sender's, in these words.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }

    /// What unpacks to far more than it is.
    pub fn bomb() -> Self {
        Self::refused(format!("it unpacks to more than {RATIO} times its size"))
    }
}

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// Bytes that an archive of this size may unpack to.
#[must_use]
pub fn most(size: u64) -> u64 {
    size.saturating_mul(RATIO).clamp(ALWAYS, NEVER)
}
