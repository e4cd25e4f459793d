//! Zip archives that every program reads in the same way. The reader refuses an archive if two
//! programs could unpack it differently, or if it unpacks to far more than its size. The plugin
//! reads only the directory and the headers; the host decodes compressed content.

#![warn(missing_docs)]

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

/// Largest allowed ratio of unpacked to packed size.
const RATIO: u64 = 100;
/// Unpacked size in bytes that is always allowed, at any ratio.
const ALWAYS: u64 = 64 << 20;
/// Largest unpacked size in bytes, at any ratio.
const NEVER: u64 = 100 << 30;

/// Reason why an archive was not read.
#[derive(Debug)]
pub enum ArchiveError {
    /// The archive is invalid. The text is the end of a sentence that begins with the file's name.
    Refused(String),
    /// An error of the host.
    Host(Error),
}

impl ArchiveError {
    /// Creates a refusal with this text.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }

    /// Creates the refusal of an archive that unpacks to far more than its size.
    pub fn bomb() -> Self {
        Self::refused(format!("it unpacks to more than {RATIO} times its size"))
    }
}

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// Returns how many bytes an archive of this size may unpack to.
#[must_use]
pub fn most(size: u64) -> u64 {
    size.saturating_mul(RATIO).clamp(ALWAYS, NEVER)
}
