//! What a zip's readers read: bytes that must be there, and numbers in them.

use crate::ArchiveError;
use packhouse_sdk::ReadAt;

/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;

/// Bytes of an archive with those that were read last.
pub(crate) struct Window<'a, R: ?Sized>(packhouse_sdk::Window<'a, R>);

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    pub(crate) fn new(source: &'a R) -> Result<Self, ArchiveError> {
        Ok(Self(packhouse_sdk::Window::new(source, PIECE)?))
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.size()
    }

    /// Exactly these bytes; refused when the archive ends before.
    pub(crate) fn get(&mut self, offset: u64, length: u64) -> Result<&[u8], ArchiveError> {
        self.0.get(offset, length)?.ok_or_else(|| ArchiveError::refused("it ends too early"))
    }
}

/// A little-endian number of `LENGTH` bytes in a header that is long enough for it; 0 where it is not.
pub(crate) fn number<const LENGTH: usize>(header: &[u8], at: usize) -> u64 {
    let bytes = header.get(at..at + LENGTH).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
