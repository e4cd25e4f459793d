//! The body of a publish: the length of the metadata and they, the length of the crate file and it, lengths as 32 bits with the least
//! byte first.

use crate::FILE_LIMIT;
use packhouse_sdk::{Blob, Error, Failure, ReadAt};

/// Bytes of the metadata, the README among them.
const METADATA_LIMIT: u64 = 4 << 20;
/// Bytes of a whole body.
pub(crate) const LIMIT: u64 = FILE_LIMIT + METADATA_LIMIT + 8;

/// Where the two parts lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    metadata: (u64, u64),
    file: (u64, u64),
}

impl Frame {
    /// Reads the lengths.
    ///
    /// # Errors
    /// 400 where the body has another length than they say, 413 where the metadata are too long.
    pub(crate) fn read(body: &impl ReadAt) -> Result<Self, Failure> {
        let size = body.size()?;
        let length = number(body, size, 0)?;
        if length > METADATA_LIMIT {
            return Err(Failure::too_large(format!(
                "The metadata have {length} bytes, and at most {METADATA_LIMIT} are allowed"
            )));
        }
        let file = number(body, size, 4 + length)?;
        if 8 + length + file != size {
            return Err(broken());
        }
        Ok(Self { metadata: (4, length), file: (8 + length, file) })
    }

    pub(crate) fn metadata(&self, body: &Blob) -> Result<Blob, Error> {
        body.slice(self.metadata.0, self.metadata.1)
    }

    pub(crate) fn file(&self, body: &Blob) -> Result<Blob, Error> {
        body.slice(self.file.0, self.file.1)
    }

    /// Bytes of the crate file.
    pub(crate) fn file_size(&self) -> u64 {
        self.file.1
    }
}

fn number(body: &impl ReadAt, size: u64, at: u64) -> Result<u64, Failure> {
    if at + 4 > size {
        return Err(broken());
    }
    let bytes = body.read_exact_at(at, 4)?;
    let bytes = bytes.first_chunk::<4>().ok_or_else(broken)?;
    Ok(u32::from_le_bytes(*bytes).into())
}

fn broken() -> Failure {
    Failure::invalid("The body is not as cargo sends it: its parts have other lengths than it says")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(metadata: &[u8], file: &[u8]) -> Vec<u8> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&length(metadata)[..], metadata, &length(file), file].concat()
    }

    proptest! {
        #[test]
        fn what_was_framed_is_found(metadata in prop::collection::vec(any::<u8>(), 0..60), file in prop::collection::vec(any::<u8>(), 0..60)) {
            let frame = Frame::read(&framed(&metadata, &file)).unwrap();
            prop_assert_eq!((frame.metadata, frame.file_size()), ((4, metadata.len() as u64), file.len() as u64));
            prop_assert_eq!(frame.file.0, 8 + metadata.len() as u64);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Err(failure) = Frame::read(&bytes) {
                prop_assert!(matches!(failure.status, 400 | 413), "{failure:?}");
            }
        }
    }
}
