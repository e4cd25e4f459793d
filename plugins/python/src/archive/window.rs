//! Small readings that follow one another, made from few large ones of the host's.

use super::Fault;
use packhouse_sdk::ReadAt;

/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;

/// Bytes of a blob with those that were read last.
pub(crate) struct Window<'a, R: ?Sized> {
    source: &'a R,
    size: u64,
    start: u64,
    held: Vec<u8>,
}

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    pub(crate) fn new(source: &'a R) -> Result<Self, Fault> {
        Ok(Self { source, size: source.size()?, start: 0, held: Vec::new() })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Exactly these bytes; refused when the archive ends before.
    pub(crate) fn get(&mut self, offset: u64, length: u64) -> Result<&[u8], Fault> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size);
        let Some(end) = end else { return Err(Fault::refused("it ends too early")) };
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let wanted = length.max(PIECE).min(self.size - offset);
            self.held = self.source.read_exact_at(offset, wanted)?;
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(self.held.get(from..from + length as usize).unwrap_or_default())
    }
}

/// A little-endian number of `LENGTH` bytes in a header that is long enough for it; 0 where it is not.
pub(crate) fn number<const LENGTH: usize>(header: &[u8], at: usize) -> u64 {
    let bytes = header.get(at..at + LENGTH).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
