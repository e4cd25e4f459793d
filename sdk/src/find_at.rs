//! Search in a blob, which the host does without passing the bytes to the plugin, or in a slice in
//! a test.

use crate::{Blob, Error, ReadAt};

/// Random access to bytes, with a search.
pub trait FindAt: ReadAt {
    /// Returns the offset of the first byte with this value at or after `start`.
    ///
    /// # Errors
    /// Returns the host's error.
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
