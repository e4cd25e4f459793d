//! Bytes that can be searched without passing through the plugin: a blob of the host's, or a slice in tests.

use packhouse_sdk::{Blob, Error, ReadAt};

/// Random access with a search.
pub(crate) trait Source: ReadAt {
    /// Where the first `needle` begins that lies wholly within `start` and the end.
    ///
    /// # Errors
    /// The host's.
    fn find(&self, needle: u8, start: u64) -> Result<Option<u64>, Error>;
}

impl Source for Blob {
    fn find(&self, needle: u8, start: u64) -> Result<Option<u64>, Error> {
        let end = self.size()?;
        Self::find(self, &[needle], start.min(end), end)
    }
}

impl Source for [u8] {
    fn find(&self, needle: u8, start: u64) -> Result<Option<u64>, Error> {
        let rest = self.get(usize::try_from(start).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest.iter().position(|byte| *byte == needle).map(|at| start + at as u64))
    }
}

impl<T: Source + ?Sized> Source for &T {
    fn find(&self, needle: u8, start: u64) -> Result<Option<u64>, Error> {
        (**self).find(needle, start)
    }
}
