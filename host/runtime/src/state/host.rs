//! State of `host` for one call: the number of log lines, and the time that the call reads.

use packhouse_store::now_ms;

const MAX_LINES: u32 = 100;

/// Treatment of a log line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineOutcome {
    Written,
    /// The first line that is dropped.
    FirstCut,
    Cut,
}

/// Log lines and time of a call.
#[derive(Default)]
pub(crate) struct LogAndClock {
    lines: u32,
    now: Option<u64>,
}

impl LogAndClock {
    /// Creates the state of a call whose clock shows this time, in ms since 1970. None means the
    /// current time.
    pub(crate) fn at(now: Option<u64>) -> LogAndClock {
        LogAndClock { lines: 0, now }
    }

    pub(crate) const MAX_LINES: u32 = MAX_LINES;

    pub(crate) fn line(&mut self) -> LineOutcome {
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..=MAX_LINES => LineOutcome::Written,
            lines if lines == MAX_LINES + 1 => LineOutcome::FirstCut,
            _ => LineOutcome::Cut,
        }
    }

    /// The time in ms since 1970, the same for the whole call.
    pub(crate) fn now(&mut self) -> u64 {
        // A clock before 1970 is wrong, and a plugin can do nothing about it.
        *self.now.get_or_insert_with(|| now_ms().unsigned_abs())
    }
}
