//! The check value of a blob: cheap enough to compute at every whole read, where SHA-256 would cost more than the sending.
//!
//! It is XXH3-64 chained over blocks of 8 KiB, each seeded with the value before it, the last block being what is left
//! (nothing, if the bytes end with a block). A chain and not one long XXH3 because its state between two requests of a
//! resumed upload is then these few bytes, which `SavedCheck` holds.

use xxhash_rust::xxh3::xxh3_64_with_seed;

const BLOCK: usize = 8 * 1024;

/// Computes the check value piece by piece.
#[derive(Clone, Default)]
pub(crate) struct Check {
    chain: u64,
    /// The begun block, shorter than `BLOCK`.
    begun: Vec<u8>,
}

impl Check {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        if !self.begun.is_empty() {
            let missing = BLOCK - self.begun.len();
            let (head, rest) = bytes.split_at(missing.min(bytes.len()));
            self.begun.extend_from_slice(head);
            bytes = rest;
            if self.begun.len() < BLOCK {
                return;
            }
            self.chain = xxh3_64_with_seed(&self.begun, self.chain);
            self.begun.clear();
        }
        let mut blocks = bytes.chunks_exact(BLOCK);
        for block in &mut blocks {
            self.chain = xxh3_64_with_seed(block, self.chain);
        }
        self.begun.extend_from_slice(blocks.remainder());
    }

    /// The value of all that was added.
    pub(crate) fn value(&self) -> u64 {
        xxh3_64_with_seed(&self.begun, self.chain)
    }

    /// The value of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut blocks = bytes.chunks_exact(BLOCK);
        let chain = blocks.by_ref().fold(0, |chain, block| xxh3_64_with_seed(block, chain));
        xxh3_64_with_seed(blocks.remainder(), chain)
    }

    /// Appends the state to `out`: the chain as 8 little-endian bytes, then the begun block.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&self.begun);
    }

    /// The state that `save` wrote; none when `saved` is not one.
    pub(crate) fn restore(saved: &[u8]) -> Option<Check> {
        let (chain, begun) = saved.split_first_chunk::<8>()?;
        (begun.len() < BLOCK).then(|| Check { chain: u64::from_le_bytes(*chain), begun: begun.to_vec() })
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
    fn what_was_not_saved_is_not_restored() {
        assert!(Check::restore(&[1, 2, 3]).is_none());
        assert!(Check::restore(&[0; 8 + BLOCK]).is_none());
    }
}
