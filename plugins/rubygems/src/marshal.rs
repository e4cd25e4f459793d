//! Writer for Ruby's Marshal format, version 4.8, as far as indexes and specifications need it.

/// A document that is being written.
#[derive(Debug)]
pub(crate) struct Marshal {
    out: Vec<u8>,
    /// Symbols that were already written. If a symbol occurs again, the document refers to its
    /// position in this list.
    symbols: Vec<&'static str>,
}

impl Marshal {
    /// Creates an empty document.
    pub(crate) fn new() -> Self {
        Self { out: vec![4, 8], symbols: Vec::new() }
    }

    /// Returns the whole document.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    /// Removes and returns the bytes that were written since the last call, so that memory need not
    /// hold a whole large document.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Returns the number of bytes that [`take`](Self::take) would return.
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

    /// Writes a text and marks it as UTF-8.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.extend(b"I\"");
        self.bytes(text.as_bytes());
        self.length(1);
        self.symbol("E");
        self.out.push(b'T');
    }

    /// Starts an array. The caller must then write `length` values.
    pub(crate) fn array(&mut self, length: usize) {
        self.out.push(b'[');
        self.length(length);
    }

    /// Starts a hash. The caller must then write `length` keys, each with its value.
    pub(crate) fn hash(&mut self, length: usize) {
        self.out.push(b'{');
        self.length(length);
    }

    /// Starts an object of this class. The caller must then write `variables` symbols, each with
    /// its value.
    pub(crate) fn object(&mut self, class: &'static str, variables: usize) {
        self.out.push(b'o');
        self.symbol(class);
        self.length(variables);
    }

    /// Starts an object that its class restores from one value with `marshal_load`. The caller must
    /// then write this value.
    pub(crate) fn loaded(&mut self, class: &'static str) {
        self.out.push(b'U');
        self.symbol(class);
    }

    /// Writes an object that its class restores from these bytes with `_load`.
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

    /// Writes a `Gem::Version`.
    pub(crate) fn version(&mut self, version: &str) {
        self.loaded("Gem::Version");
        self.array(1);
        self.text(version);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    /// Writes a non-negative number in Marshal's short form.
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
    fn the_bytes_are_those_that_ruby_writes() {
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
