//! Reading of bytes and of the numbers in them. Missing bytes are a refusal of the archive.

use crate::ArchiveError;
use packhouse_sdk::ReadAt;

/// Bytes to read at a time.
const PIECE: u64 = 64 << 10;

/// Window of an archive; see [`packhouse_sdk::Window`].
pub(crate) struct Window<'a, R: ?Sized>(packhouse_sdk::Window<'a, R>);

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    pub(crate) fn new(source: &'a R) -> Result<Self, ArchiveError> {
        Ok(Self(packhouse_sdk::Window::new(source, PIECE)?))
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.size()
    }

    /// Returns exactly `length` bytes from `offset` on, or a refusal if the archive ends before.
    pub(crate) fn get(&mut self, offset: u64, length: u64) -> Result<&[u8], ArchiveError> {
        self.0.get(offset, length)?.ok_or_else(|| ArchiveError::refused("it is truncated"))
    }
}

/// Returns the little-endian number of `LENGTH` bytes at `at`; 0 if the header is too short.
pub(crate) fn number<const LENGTH: usize>(header: &[u8], at: usize) -> u64 {
    let bytes = header.get(at..at + LENGTH).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
