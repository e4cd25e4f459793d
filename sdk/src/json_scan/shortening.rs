//! Where a string that is too long may be cut off: within no character and no escape.

/// How much of a string was handed on, and what the last escape in it is.
#[derive(Clone, Copy)]
pub(super) struct Shortening {
    /// Bytes that were handed on.
    pub(super) passed: u64,
    /// Bytes since a backslash that begins an escape.
    since: u8,
    /// Of the last escape: whether it has six bytes, its third byte, and whether it is the first half of a character.
    long: bool,
    third: u8,
    half: bool,
}

impl Shortening {
    pub(super) fn new() -> Self {
        Self { passed: 0, since: u8::MAX, long: false, third: 0, half: false }
    }

    /// Whether the text may end before this byte: within no character and no escape, and not between two that make one character.
    pub(super) fn may_end_before(&self, byte: u8) -> bool {
        let escape = match (self.long, self.half) {
            (_, true) => 12,
            (true, false) => 6,
            (false, false) => 2,
        };
        byte & 0xc0 != 0x80 && self.since >= escape - 1
    }

    /// Takes a byte that is handed on.
    pub(super) fn take(&mut self, byte: u8) {
        self.passed += 1;
        // Within an escape a second backslash begins none.
        if byte == b'\\' && self.since != 0 {
            // The second half of a character is a part of the first.
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
