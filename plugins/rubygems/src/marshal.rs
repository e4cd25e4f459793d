//! Ruby's Marshal, version 4.8, as far as indexes and specifications need it: written, never read.

/// What is being written.
#[derive(Debug)]
pub(crate) struct Marshal {
    out: Vec<u8>,
    /// Symbols that were written, which are named by their number from then on.
    symbols: Vec<&'static str>,
}

impl Marshal {
    /// An empty document.
    pub(crate) fn new() -> Self {
        Self { out: vec![4, 8], symbols: Vec::new() }
    }

    /// The whole document.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    /// What was written since the last time, so that a large document need not be in memory.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// How much that is.
    pub(crate) fn pending(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn nil(&mut self) {
        self.out.push(b'0');
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.out.push(if value { b'T' } else { b'F' });
    }

    pub(crate) fn number(&mut self, value: usize) {
        self.out.push(b'i');
        self.length(value);
    }

    /// Text, which says that it is UTF-8.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.extend(b"I\"");
        self.bytes(text.as_bytes());
        self.length(1);
        self.symbol("E");
        self.out.push(b'T');
    }

    /// An array, of which so many values follow.
    pub(crate) fn array(&mut self, length: usize) {
        self.out.push(b'[');
        self.length(length);
    }

    /// A hash, of which so many names with their values follow.
    pub(crate) fn hash(&mut self, length: usize) {
        self.out.push(b'{');
        self.length(length);
    }

    /// An object of this class with so many variables, each a symbol and a value.
    pub(crate) fn object(&mut self, class: &'static str, variables: usize) {
        self.out.push(b'o');
        self.symbol(class);
        self.length(variables);
    }

    /// An object whose class reads the value that follows (`marshal_load`).
    pub(crate) fn loaded(&mut self, class: &'static str) {
        self.out.push(b'U');
        self.symbol(class);
    }

    /// An object whose class reads these bytes (`_load`).
    pub(crate) fn dumped(&mut self, class: &'static str, bytes: &[u8]) {
        self.out.push(b'u');
        self.symbol(class);
        self.bytes(bytes);
    }

    pub(crate) fn symbol(&mut self, name: &'static str) {
        if let Some(at) = self.symbols.iter().position(|known| *known == name) {
            self.out.push(b';');
            self.length(at);
        } else {
            self.symbols.push(name);
            self.out.push(b':');
            self.bytes(name.as_bytes());
        }
    }

    /// A Gem::Version.
    pub(crate) fn version(&mut self, version: &str) {
        self.loaded("Gem::Version");
        self.array(1);
        self.text(version);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    /// A number that is not negative, in Marshal's short form.
    fn length(&mut self, value: usize) {
        match value {
            0 => self.out.push(0),
            1..=122 => self.out.push(value as u8 + 5),
            _ => {
                let bytes = (value as u32).to_le_bytes();
                let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |at| at + 1);
                self.out.push(used as u8);
                self.out.extend(bytes.iter().take(used));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Marshal;

    #[test]
    fn it_is_what_ruby_writes() {
        // Marshal.dump(["a", :a, nil, true, 300, {"k" => 5}])
        let mut out = Marshal::new();
        out.array(6);
        out.text("a");
        out.symbol("a");
        out.nil();
        out.boolean(true);
        out.number(300);
        out.hash(1);
        out.text("k");
        out.number(5);
        let expected = b"\x04\x08[\x0bI\"\x06a\x06:\x06ET:\x06a0Ti\x02\x2c\x01{\x06I\"\x06k\x06;\x00Ti\x0a";
        assert_eq!(out.finish(), expected);
        // Marshal.dump(Gem::Version.new("1.0"))
        let mut out = Marshal::new();
        out.version("1.0");
        assert_eq!(out.finish(), b"\x04\x08U:\x11Gem::Version[\x06I\"\x081.0\x06:\x06ET");
    }
}
