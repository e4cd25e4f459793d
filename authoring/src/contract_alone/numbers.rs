//! New numbers of one kind of item, by their old ones.

/// None for an item that is gone.
#[derive(Default)]
pub(super) struct Numbers {
    new: Vec<Option<u32>>,
    next: u32,
}

impl Numbers {
    /// The next old item, or that it is gone.
    pub(super) fn add(&mut self, kept: bool) {
        let new = kept.then(|| self.insert());
        self.new.push(new);
    }

    /// An item that was not there before: its number.
    pub(super) fn insert(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// How many old items there have been.
    pub(super) fn old(&self) -> u32 {
        u32::try_from(self.new.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn of(&self, old: u32) -> Option<u32> {
        self.new.get(old as usize).copied().flatten()
    }
}
