//! A document in memory, in the parts that a plugin joined. One buffer for all parts would need a
//! copy of bytes that the memo already holds.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use packhouse_store::Blob;

/// A document in parts. Cheap to clone.
#[derive(Clone)]
pub struct Joined {
    parts: Arc<[JoinedPart]>,
    size: u64,
}

/// One part of a document.
#[derive(Clone)]
pub struct JoinedPart {
    pub bytes: Bytes,
    /// Position in the memoized blob that the bytes were cut from.
    pub cut: Option<Cut>,
}

/// Position of bytes in a memoized blob. The digest of that blob is computed once and then known.
#[derive(Clone)]
pub struct Cut {
    pub of: Blob,
    /// Offset of the bytes in `of`.
    pub start: u64,
}

impl Joined {
    /// Joins these parts in their order.
    #[must_use]
    pub fn of(parts: Vec<JoinedPart>) -> Joined {
        let size = parts.iter().map(|part| part.bytes.len() as u64).sum();
        Joined { parts: parts.into(), size }
    }

    /// Bytes of all parts together.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The parts, none of which is empty.
    #[must_use]
    pub fn parts(&self) -> &[JoinedPart] {
        &self.parts
    }

    /// Returns the bytes of a range without copying them. The range is cut at the end of the
    /// document.
    #[must_use]
    pub fn range(&self, range: Range<u64>) -> Vec<Bytes> {
        let mut found = Vec::with_capacity(self.parts.len());
        let mut at = 0;
        for JoinedPart { bytes, .. } in self.parts.iter() {
            let length = bytes.len() as u64;
            // Both values are at most the length of the part, which fits `usize`.
            let within = |offset: u64| usize::try_from(offset.saturating_sub(at).min(length)).unwrap_or(0);
            let (from, to) = (within(range.start), within(range.end));
            if from < to {
                found.push(bytes.slice(from..to));
            }
            at += length;
        }
        found
    }

    /// Copies all parts into one buffer.
    #[must_use]
    pub fn concat(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(usize::try_from(self.size).unwrap_or(0));
        self.parts.iter().for_each(|part| bytes.extend_from_slice(&part.bytes));
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_equals_the_range_of_the_whole() {
        let part = |text: &'static str| JoinedPart { bytes: Bytes::from_static(text.as_bytes()), cut: None };
        let joined = Joined::of(vec![part("ab"), part("cde"), part("f")]);
        assert_eq!((joined.size(), &*joined.concat()), (6, &b"abcdef"[..]));
        for start in 0..8_u64 {
            for end in start..8 {
                let expected = &b"abcdef"[start.min(6) as usize..end.min(6) as usize];
                let found = joined.range(start..end);
                assert!(found.iter().all(|bytes| !bytes.is_empty()));
                assert_eq!(found.concat(), expected, "{start}..{end}");
            }
        }
    }
}
