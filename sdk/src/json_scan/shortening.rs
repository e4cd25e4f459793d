//! Positions where a long string may be cut: not within a character or an escape.

/// Progress through a string, and the state of its last escape.
#[derive(Clone, Copy)]
pub(super) struct Shortening {
    /// Bytes that were passed on.
    pub(super) passed: u64,
    /// Bytes since a backslash that begins an escape.
    since: u8,
    /// Last escape: true if it has six bytes (`\uXXXX`), its third byte, and true if it is the
    /// first half of a surrogate pair.
    long: bool,
    third: u8,
    half: bool,
}

impl Shortening {
    pub(super) fn new() -> Self {
        Self { passed: 0, since: u8::MAX, long: false, third: 0, half: false }
    }

    /// True if the text may be cut before this byte: not within a character or an escape, and not
    /// between the two escapes of a surrogate pair.
    pub(super) fn may_end_before(&self, byte: u8) -> bool {
        let escape = match (self.long, self.half) {
            (_, true) => 12,
            (true, false) => 6,
            (false, false) => 2,
        };
        byte & 0xc0 != 0x80 && self.since >= escape - 1
    }

    /// Processes a byte that is passed on.
    pub(super) fn take(&mut self, byte: u8) {
        self.passed += 1;
        // A second backslash within an escape does not begin another one.
        if byte == b'\\' && self.since != 0 {
            // The second half of a surrogate pair belongs to the escape of the first half.
            if self.half && self.since == 5 {
                self.since = 6;
            } else {
                (self.since, self.half) = (0, false);
            }
            return;
        }
        self.since = self.since.saturating_add(1);
        match self.since {
            1 => self.long = byte == b'u',
            2 => self.third = byte,
            3 if self.long => {
                self.half = matches!(self.third, b'd' | b'D')
                    && matches!(byte, b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
            }
            _ => {}
        }
    }
}
