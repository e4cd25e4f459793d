//! Check value of a blob. It is cheap enough to check at every whole read. SHA-256 would cost more
//! than sending the bytes.
//!
//! The check value is XXH3-64 chained over blocks of 8 KiB: each block is seeded with the value of
//! the block before it. The last block is the remainder, which is empty if the length is a multiple
//! of 8 KiB. Because of the chain, the state to save between two requests of a resumed upload is
//! small: one value and the incomplete block.

use xxhash_rust::xxh3::xxh3_64_with_seed;

const BLOCK: usize = 8 * 1024;

/// Incremental computation of the check value.
#[derive(Clone, Default)]
pub(crate) struct Check {
    chain: u64,
    /// Incomplete block, shorter than `BLOCK`.
    partial: Vec<u8>,
}

impl Check {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        if !self.partial.is_empty() {
            let missing = BLOCK - self.partial.len();
            let (head, rest) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(head);
            bytes = rest;
            if self.partial.len() < BLOCK {
                return;
            }
            self.chain = xxh3_64_with_seed(&self.partial, self.chain);
            self.partial.clear();
        }
        let mut blocks = bytes.chunks_exact(BLOCK);
        for block in &mut blocks {
            self.chain = xxh3_64_with_seed(block, self.chain);
        }
        self.partial.extend_from_slice(blocks.remainder());
    }

    /// Returns the check value of all bytes so far.
    pub(crate) fn value(&self) -> u64 {
        xxh3_64_with_seed(&self.partial, self.chain)
    }

    /// Returns the check value of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut blocks = bytes.chunks_exact(BLOCK);
        let chain = blocks.by_ref().fold(0, |chain, block| xxh3_64_with_seed(block, chain));
        xxh3_64_with_seed(blocks.remainder(), chain)
    }

    /// Appends the state to `out`: the chain as 8 little-endian bytes, then the incomplete block.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&self.partial);
    }

    /// Restores the state written by `save`; `None` if `saved` is malformed.
    pub(crate) fn restore(saved: &[u8]) -> Option<Check> {
        let (chain, partial) = saved.split_first_chunk::<8>()?;
        (partial.len() < BLOCK)
            .then(|| Check { chain: u64::from_le_bytes(*chain), partial: partial.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_and_a_saved_state_give_the_value_of_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..40_000), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut check = Check::default();
            let mut start = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                check.update(&bytes[start..cut]);
                start = cut;
                let mut saved = Vec::new();
                check.save(&mut saved);
                check = Check::restore(&saved).unwrap();
            }
            prop_assert_eq!(check.value(), Check::of(&bytes));
        }
    }

    #[test]
    fn a_malformed_state_is_not_restored() {
        assert!(Check::restore(&[1, 2, 3]).is_none());
        assert!(Check::restore(&[0; 8 + BLOCK]).is_none());
    }
}
