//! Buffered reading: a few large reads serve many small consecutive reads.

use crate::{Error, ReadAt};

/// Bytes of a source, with a buffer of the last read.
pub struct Window<'a, R: ?Sized> {
    source: &'a R,
    size: u64,
    /// Bytes to read at a time.
    piece: u64,
    start: u64,
    held: Vec<u8>,
}

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    /// Creates a window that reads `piece` bytes at a time, or more if a larger read needs them.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn new(source: &'a R, piece: u64) -> Result<Self, Error> {
        Ok(Self { source, size: source.size()?, piece, start: 0, held: Vec::new() })
    }

    /// Returns the size of the source in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns exactly `length` bytes from `offset` on; `None` if the source ends before.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn get(&mut self, offset: u64, length: u64) -> Result<Option<&[u8]>, Error> {
        let Some(end) = offset.checked_add(length).filter(|end| *end <= self.size) else { return Ok(None) };
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let length_to_read = length.max(self.piece).min(self.size - offset);
            self.held = self.source.read_exact_at(offset, length_to_read)?;
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(Some(self.held.get(from..from + length as usize).unwrap_or_default()))
    }
}
