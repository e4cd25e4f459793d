//! Where in a document a byte stands, told from the bytes before it.

/// How deep keys are remembered, and members are told.
pub(super) const LEVELS: usize = 3;
/// Bytes of a key that are remembered.
const KEY: usize = 32;

/// What begins with a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanEvent {
    /// Nothing that matters.
    Nothing,
    /// The key of a member, in an object so deep: 1 for the document's own.
    Key(usize),
    /// A value that is text.
    Text,
}

/// A place in a document.
#[derive(Default)]
pub(super) struct Place {
    depth: usize,
    /// Of the first levels: whether it is an object, and the key that its member has.
    objects: [bool; LEVELS + 1],
    keys: [Vec<u8>; LEVELS + 1],
    expects_key: bool,
    string: Option<Text>,
}

/// A string that is being read.
#[derive(Clone, Copy)]
struct Text {
    is_key: bool,
    /// Whether the byte before was a backslash that begins an escape.
    escaped: bool,
}

impl Place {
    /// Goes on by one byte.
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

    /// Whether a string has begun that has not ended.
    pub(super) fn in_string(&self) -> bool {
        self.string.is_some()
    }

    /// Goes behind the string that has begun, whose content was skipped.
    pub(super) fn leave_string(&mut self) {
        self.string = None;
    }

    /// Whether the member at this path is being read. A path has a key for each level, where `*` stands for any.
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
        self.string = Some(Text { is_key, escaped: false });
        if !is_key {
            return ScanEvent::Text;
        }
        self.expects_key = false;
        if let Some(key) = self.keys.get_mut(self.depth) {
            key.clear();
        }
        ScanEvent::Key(self.depth)
    }

    fn within(&mut self, text: Text, byte: u8) {
        if byte == b'"' && !text.escaped {
            self.string = None;
            return;
        }
        if text.is_key
            && let Some(key) = self.keys.get_mut(self.depth).filter(|key| key.len() < KEY)
        {
            key.push(byte);
        }
        self.string = Some(Text { escaped: byte == b'\\' && !text.escaped, ..text });
    }
}
