//! A document in memory in the parts that a plugin put it together of: joining them would copy what is remembered anyway.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use packhouse_store::Blob;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Joined {
    parts: Arc<[JoinedPart]>,
    size: u64,
}

/// A part of it.
#[derive(Clone)]
pub struct JoinedPart {
    /// Its bytes.
    pub bytes: Bytes,
    /// What they are cut out of.
    pub cut: Option<Cut>,
}

/// Where bytes lie in something that is remembered, whose digest is known once it was asked for.
#[derive(Clone)]
pub struct Cut {
    /// That whole.
    pub of: Blob,
    /// Where they begin in it.
    pub start: u64,
}

impl Joined {
    /// Of these parts, in their order.
    #[must_use]
    pub fn of(parts: Vec<JoinedPart>) -> Joined {
        let size = parts.iter().map(|part| part.bytes.len() as u64).sum();
        Joined { parts: parts.into(), size }
    }

    /// Bytes of all.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The parts, none of which is empty.
    #[must_use]
    pub fn parts(&self) -> &[JoinedPart] {
        &self.parts
    }

    /// The bytes of a range, which is cut off at the end, without a copy.
    #[must_use]
    pub fn range(&self, range: Range<u64>) -> Vec<Bytes> {
        let mut found = Vec::with_capacity(self.parts.len());
        let mut at = 0;
        for JoinedPart { bytes, .. } in self.parts.iter() {
            let length = bytes.len() as u64;
            // Both are at most the length, which fits.
            let within = |offset: u64| usize::try_from(offset.saturating_sub(at).min(length)).unwrap_or(0);
            let (from, to) = (within(range.start), within(range.end));
            if from < to {
                found.push(bytes.slice(from..to));
            }
            at += length;
        }
        found
    }

    /// All of it as one, copied.
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
    fn a_range_is_the_same_as_of_the_whole() {
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
