//! Random access to bytes, so that a codec works on a blob in Wasm and on a slice in a test.

use crate::{Blob, Error};

/// Largest number of bytes that one read returns: 1 MiB.
const PIECE: u64 = 1 << 20;

/// Random access to bytes.
pub trait ReadAt {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// Returns the host's error.
    fn size(&self) -> Result<u64, Error>;

    /// Returns the bytes from `offset` on: at most `length`, and at most 1 MiB. Returns fewer only
    /// at the end of the bytes, and none if `offset` is at or past the end.
    ///
    /// # Errors
    /// Returns the host's error.
    fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error>;

    /// Returns exactly `length` bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the bytes end before; otherwise the host's error.
    fn read_exact_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let missing = length - bytes.len() as u64;
            let piece = self.read_at(offset + bytes.len() as u64, missing.min(PIECE) as u32)?;
            if piece.is_empty() {
                return Err(Error::Invalid(format!("{length} bytes at {offset}: past the end")));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Returns all bytes if there are at most `limit`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the actual size if there are more; otherwise the host's error.
    fn read_all(&self, limit: u64) -> Result<Vec<u8>, Error> {
        let size = self.size()?;
        if size > limit {
            return Err(Error::TooLarge(size));
        }
        self.read_exact_at(0, size)
    }
}

impl ReadAt for Blob {
    fn size(&self) -> Result<u64, Error> {
        Self::size(self)
    }

    fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.read(offset, length)
    }

    fn read_all(&self, limit: u64) -> Result<Vec<u8>, Error> {
        let size = self.size_within(limit)?;
        self.read_exact_at(0, size)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> Result<u64, Error> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let end = start.saturating_add(length.min(PIECE as u32) as usize).min(self.len());
        Ok(self.get(start..end).unwrap_or_default().to_vec())
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn size(&self) -> Result<u64, Error> {
        (**self).size()
    }

    fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        (**self).read_at(offset, length)
    }

    fn read_all(&self, limit: u64) -> Result<Vec<u8>, Error> {
        (**self).read_all(limit)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> Result<u64, Error> {
        self.as_slice().size()
    }

    fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.as_slice().read_at(offset, length)
    }
}
