//! Maps the old numbers of one kind of item to the new ones.

/// New numbers by old number, with `None` for a removed item.
#[derive(Default)]
pub(super) struct NumberMap {
    new: Vec<Option<u32>>,
    next: u32,
}

impl NumberMap {
    /// Adds the next old item, which stays or is removed.
    pub(super) fn add(&mut self, stays: bool) {
        let new = stays.then(|| self.insert());
        self.new.push(new);
    }

    /// Adds an item that the old component does not have. Returns its number.
    pub(super) fn insert(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Number of old items so far.
    pub(super) fn old(&self) -> u32 {
        u32::try_from(self.new.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn of(&self, old: u32) -> Option<u32> {
        self.new.get(old as usize).copied().flatten()
    }
}
