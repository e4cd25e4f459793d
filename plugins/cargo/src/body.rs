//! The body of a publish request. It has four parts in this order: the length of the metadata, the
//! metadata, the length of the crate file, and the crate file. Lengths are 32-bit little-endian
//! numbers.

use crate::FILE_LIMIT;
use packhouse_sdk::{Blob, Error, Failure, ReadAt};

/// Maximum size of the metadata, in bytes. The metadata include the README.
const METADATA_LIMIT: u64 = 4 << 20;
/// Bytes of the largest body.
pub(crate) const LIMIT: u64 = FILE_LIMIT + METADATA_LIMIT + 8;

/// Offset and length of the metadata and of the crate file in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    metadata: (u64, u64),
    file: (u64, u64),
}

impl Frame {
    /// Reads the two lengths of a body.
    ///
    /// # Errors
    /// 400 if the lengths do not match the body, 413 if the metadata are too long.
    pub(crate) fn read(body: &impl ReadAt) -> Result<Self, Failure> {
        let size = body.size()?;
        let length = number(body, size, 0)?;
        if length > METADATA_LIMIT {
            return Err(Failure::too_large(format!(
                "The metadata have {length} bytes; at most {METADATA_LIMIT} are allowed"
            )));
        }
        let file = number(body, size, 4 + length)?;
        if 8 + length + file != size {
            return Err(wrong_lengths());
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
        return Err(wrong_lengths());
    }
    let bytes = body.read_exact_at(at, 4)?;
    let bytes = bytes.first_chunk::<4>().ok_or_else(wrong_lengths)?;
    Ok(u32::from_le_bytes(*bytes).into())
}

fn wrong_lengths() -> Failure {
    Failure::invalid("The body does not have the form that cargo sends: the stated lengths do not match it")
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
        fn the_parts_of_a_framed_body_are_found(metadata in prop::collection::vec(any::<u8>(), 0..60), file in prop::collection::vec(any::<u8>(), 0..60)) {
            let frame = Frame::read(&framed(&metadata, &file)).unwrap();
            prop_assert_eq!((frame.metadata, frame.file_size()), ((4, metadata.len() as u64), file.len() as u64));
            prop_assert_eq!(frame.file.0, 8 + metadata.len() as u64);
        }

        #[test]
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Err(failure) = Frame::read(&bytes) {
                prop_assert!(matches!(failure.status, 400 | 413), "{failure:?}");
            }
        }
    }
}
