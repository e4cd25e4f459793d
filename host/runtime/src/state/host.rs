//! What `host` keeps of a call: how much it has logged, and the time that it was told.

use packhouse_store::now_ms;

const MAX_LINES: u32 = 100;

/// Whether a line is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Line {
    /// It is.
    Written,
    /// It is the first that is cut.
    FirstCut,
    /// It is cut.
    Cut,
}

/// Log lines and time of a call.
#[derive(Default)]
pub(crate) struct LogAndClock {
    lines: u32,
    now: Option<u64>,
}

impl LogAndClock {
    /// Of a call that happens, for all that it does, at this time in ms since 1970; none is now.
    pub(crate) fn at(now: Option<u64>) -> LogAndClock {
        LogAndClock { lines: 0, now }
    }

    /// How many lines are written at most.
    pub(crate) const MAX_LINES: u32 = MAX_LINES;

    /// Counts a line.
    pub(crate) fn line(&mut self) -> Line {
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..=MAX_LINES => Line::Written,
            lines if lines == MAX_LINES + 1 => Line::FirstCut,
            _ => Line::Cut,
        }
    }

    /// The time in ms since 1970, the same for the whole call.
    pub(crate) fn now(&mut self) -> u64 {
        // A clock before 1970 is set wrong, and no plugin can do anything about it.
        *self.now.get_or_insert_with(|| now_ms().unsigned_abs())
    }
}
