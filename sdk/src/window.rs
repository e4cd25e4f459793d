//! Small readings that follow one another, made from few large ones of the host's.

use crate::{Error, ReadAt};

/// Bytes of a source with those that were read last.
pub struct Window<'a, R: ?Sized> {
    source: &'a R,
    size: u64,
    /// Bytes that are read at once.
    piece: u64,
    start: u64,
    held: Vec<u8>,
}

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    /// A window that reads `piece` bytes at once, and more where more are wanted.
    ///
    /// # Errors
    /// The host's.
    pub fn new(source: &'a R, piece: u64) -> Result<Self, Error> {
        Ok(Self { source, size: source.size()?, piece, start: 0, held: Vec::new() })
    }

    /// Bytes of the source.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Exactly these bytes; none where the source ends before.
    ///
    /// # Errors
    /// The host's.
    pub fn get(&mut self, offset: u64, length: u64) -> Result<Option<&[u8]>, Error> {
        let Some(end) = offset.checked_add(length).filter(|end| *end <= self.size) else { return Ok(None) };
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let wanted = length.max(self.piece).min(self.size - offset);
            self.held = self.source.read_exact_at(offset, wanted)?;
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(Some(self.held.get(from..from + length as usize).unwrap_or_default()))
    }
}
