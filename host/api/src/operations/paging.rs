//! Lists in pages.

/// Which page is wanted.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<I> {
    /// How many rows it has at most.
    pub limit: u32,
    /// It begins behind the row of this id; none for the first page.
    pub after: Option<I>,
}

impl<I> PageRequest<I> {
    /// How many rows are read: one further than the page, to know whether another follows.
    pub(super) fn one_further(&self) -> u32 {
        self.limit.saturating_add(1)
    }

    /// The page of rows that were read one further.
    pub(super) fn cut<R>(&self, mut rows: Vec<R>) -> Listed<R> {
        let limit = self.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        Listed { rows, more }
    }
}

/// A page.
#[derive(Debug)]
pub struct Listed<R> {
    /// What is on it.
    pub rows: Vec<R>,
    /// Whether another follows.
    pub more: bool,
}
