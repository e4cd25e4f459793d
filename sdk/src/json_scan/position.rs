//! Position of a byte in the structure of a document, derived from the bytes before it.

/// Number of levels at which [`Position`] remembers keys and reports members.
pub(super) const LEVELS: usize = 3;
/// Number of bytes of a key that are remembered.
const KEY: usize = 32;

/// Event at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanEvent {
    /// No event.
    Nothing,
    /// The key of a member begins, in an object at this depth; the document's own object has depth
    /// 1.
    Key(usize),
    /// A string value begins.
    Text,
}

/// Position in the structure of a document.
#[derive(Default)]
pub(super) struct Position {
    depth: usize,
    /// For each of the first levels: true if the level is an object.
    objects: [bool; LEVELS + 1],
    /// For each of the first levels: the beginning of the key of the current member.
    keys: [Vec<u8>; LEVELS + 1],
    expects_key: bool,
    string: Option<StringState>,
}

/// String that is being read.
#[derive(Clone, Copy)]
struct StringState {
    is_key: bool,
    /// True if the previous byte was a backslash that begins an escape.
    escaped: bool,
}

impl Position {
    /// Advances by one byte.
    pub(super) fn take(&mut self, byte: u8) -> ScanEvent {
        if let Some(text) = self.string {
            self.within(text, byte);
            return ScanEvent::Nothing;
        }
        match byte {
            b'"' => return self.string_begins(),
            b'{' | b'[' => {
                self.depth += 1;
                if let Some(object) = self.objects.get_mut(self.depth) {
                    *object = byte == b'{';
                }
                self.expects_key = byte == b'{' && self.depth <= LEVELS;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.expects_key = false;
            }
            b',' => self.expects_key = self.in_object(),
            _ => {}
        }
        ScanEvent::Nothing
    }

    /// True inside a string.
    pub(super) fn in_string(&self) -> bool {
        self.string.is_some()
    }

    /// Leaves the current string after its content was skipped.
    pub(super) fn leave_string(&mut self) {
        self.string = None;
    }

    /// True if the current member is at this path. A path has a key for each level; `*` stands for
    /// any key.
    pub(super) fn is_at(&self, path: &[&str]) -> bool {
        let matches = |(level, key): (usize, &&str)| {
            self.objects.get(level).copied().unwrap_or(false)
                && (*key == "*" || self.keys.get(level).is_some_and(|found| found == key.as_bytes()))
        };
        self.depth == path.len() && (1..).zip(path).all(matches)
    }

    fn in_object(&self) -> bool {
        self.objects.get(self.depth).copied().unwrap_or(false)
    }

    fn string_begins(&mut self) -> ScanEvent {
        let is_key = self.expects_key && self.in_object();
        self.string = Some(StringState { is_key, escaped: false });
        if !is_key {
            return ScanEvent::Text;
        }
        self.expects_key = false;
        if let Some(key) = self.keys.get_mut(self.depth) {
            key.clear();
        }
        ScanEvent::Key(self.depth)
    }

    fn within(&mut self, text: StringState, byte: u8) {
        if byte == b'"' && !text.escaped {
            self.string = None;
            return;
        }
        if text.is_key
            && let Some(key) = self.keys.get_mut(self.depth).filter(|key| key.len() < KEY)
        {
            key.push(byte);
        }
        self.string = Some(StringState { escaped: byte == b'\\' && !text.escaped, ..text });
    }
}
