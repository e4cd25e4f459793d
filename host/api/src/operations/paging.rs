//! Pages of lists, as operations return them.

#[derive(Clone, Copy, Debug)]
pub struct PageRequest<I> {
    pub limit: u32,
    /// Id of the last row of the previous page; `None` for the first page.
    pub after: Option<I>,
}

impl<I> PageRequest<I> {
    /// Number of rows to read: one more than the page, to know whether another page follows.
    pub(super) fn one_further(&self) -> u32 {
        self.limit.saturating_add(1)
    }

    /// Cuts the page from rows that were read with [`one_further`](Self::one_further).
    pub(super) fn cut<R>(&self, mut rows: Vec<R>) -> RowPage<R> {
        let limit = self.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        RowPage { rows, more }
    }
}

#[derive(Debug)]
pub struct RowPage<R> {
    pub rows: Vec<R>,
    /// True if another page follows.
    pub more: bool,
}
