//! Bytes that can be searched without passing through the plugin: a blob of the host's, or a slice in a test.

use crate::{Blob, Error, ReadAt};

/// Random access with a search.
pub trait FindAt: ReadAt {
    /// Offset of the first byte of this value at or behind `start`.
    ///
    /// # Errors
    /// The host's.
    fn find_at(&self, byte: u8, start: u64) -> Result<Option<u64>, Error>;
}

impl FindAt for Blob {
    fn find_at(&self, byte: u8, start: u64) -> Result<Option<u64>, Error> {
        let end = self.size()?;
        self.find(&[byte], start.min(end), end)
    }
}

impl FindAt for [u8] {
    fn find_at(&self, byte: u8, start: u64) -> Result<Option<u64>, Error> {
        let rest = self.get(usize::try_from(start).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest.iter().position(|found| *found == byte).map(|at| start + at as u64))
    }
}

impl<T: FindAt + ?Sized> FindAt for &T {
    fn find_at(&self, byte: u8, start: u64) -> Result<Option<u64>, Error> {
        (**self).find_at(byte, start)
    }
}
