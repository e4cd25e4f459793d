//! Reproducible random numbers (splitmix64).

/// A source of numbers, determined by its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source with this seed and this number. Each worker has its own number.
    pub fn new(seed: u64, number: u64) -> Self {
        Self(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`, which must not be 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.number() % most as u64) as usize
    }

    /// Returns true with this chance, in percent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// Shuffles the items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
