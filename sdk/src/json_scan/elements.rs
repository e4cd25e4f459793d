//! Reader for the elements of an array that is too long to parse at once. The reader returns one
//! element at a time, and holds only that element and a window of the document in memory.

use super::Span;
use crate::{Error, ReadAt};

/// Bytes to read at a time.
const WINDOW: u64 = 256 << 10;
/// Largest size of an element in bytes.
const LONGEST: usize = 1 << 20;

/// Pass over the elements of an array. The pass only recognises strings and brackets; an element is
/// unverified text until the caller parses it.
pub struct Elements<'a, S: ?Sized> {
    source: &'a S,
    /// Offset of the first unread byte, and of the end of the array.
    next: u64,
    end: u64,
    window: Vec<u8>,
    /// Number of bytes of the window that were returned or skipped.
    taken: usize,
    is_begun: bool,
}

/// First item in a window.
enum FirstItem {
    /// A complete element; holds its length in bytes.
    Element(usize),
    /// The end of the array.
    End,
    /// An incomplete element.
    Part,
}

impl<'a, S: ReadAt + ?Sized> Elements<'a, S> {
    /// Starts a pass over the array at this span, for example from
    /// [`Outline::member`](super::Outline::member).
    pub fn new(source: &'a S, array: Span) -> Self {
        let Span { start, end } = array;
        Self { source, next: start, end, window: Vec::new(), taken: 0, is_begun: false }
    }

    /// Returns the next element; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the bytes are not an array, the array does not end, or an element
    /// exceeds 1 MiB; otherwise the host's error.
    pub fn next_element(&mut self) -> Result<Option<&[u8]>, Error> {
        if !self.is_begun {
            self.begin()?;
        }
        loop {
            self.skip_between();
            let rest = self.window.get(self.taken..).unwrap_or_default();
            match first_element(rest) {
                FirstItem::End => return Ok(None),
                FirstItem::Element(length) => {
                    let start = self.taken;
                    self.taken += length;
                    return Ok(self.window.get(start..start + length));
                }
                FirstItem::Part if rest.len() > LONGEST => return Err(unreadable("an element is too long")),
                FirstItem::Part => self.read_on()?,
            }
        }
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.read_on()?;
        if self.window.first() != Some(&b'[') {
            return Err(unreadable("it is not an array"));
        }
        (self.taken, self.is_begun) = (1, true);
        Ok(())
    }

    /// Skips whitespace and commas between two elements.
    fn skip_between(&mut self) {
        let rest = self.window.get(self.taken..).unwrap_or_default();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',');
        self.taken += rest.iter().take_while(|byte| between(byte)).count();
    }

    /// Drops the bytes that were returned, and reads the next ones.
    fn read_on(&mut self) -> Result<(), Error> {
        let missing = self.end.saturating_sub(self.next).min(WINDOW);
        if missing == 0 {
            return Err(unreadable("an array does not end"));
        }
        self.window.drain(..self.taken);
        self.taken = 0;
        let read = self.source.read_exact_at(self.next, missing)?;
        self.next += read.len() as u64;
        self.window.extend_from_slice(&read);
        Ok(())
    }
}

fn first_element(bytes: &[u8]) -> FirstItem {
    if bytes.first() == Some(&b']') {
        return FirstItem::End;
    }
    let (mut at, mut depth) = (0, 0_u32);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b',' | b']' if depth == 0 => return FirstItem::Element(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match string_end(bytes, at + 1) {
                Some(end) => at = end,
                None => return FirstItem::Part,
            },
            _ => {}
        }
        at += 1;
    }
    FirstItem::Part
}

/// Returns the position of the quote that ends the string; `start` is the position of its first
/// character.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

fn unreadable(why: &str) -> Error {
    Error::Unavailable(format!("a JSON document cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn elements(text: &str) -> Result<Vec<String>, Error> {
        let mut elements = Elements::new(text.as_bytes(), Span { start: 0, end: text.len() as u64 });
        let mut found = Vec::new();
        while let Some(element) = elements.next_element()? {
            found.push(String::from_utf8_lossy(element).trim().to_owned());
        }
        Ok(found)
    }

    #[test]
    fn elements_are_handed_over_as_they_stand() {
        for (text, expected) in [
            ("[]", vec![]),
            ("[ \n]", vec![]),
            ("[1]", vec!["1"]),
            (
                r#"[ {"a": [1, 2], "b": "]},"} , "x\"]" ,3 ]"#,
                vec![r#"{"a": [1, 2], "b": "]},"}"#, r#""x\"]""#, "3"],
            ),
            (r#"["\\", "\\\""]"#, vec![r#""\\""#, r#""\\\"""#]),
        ] {
            assert_eq!(elements(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_array_longer_than_a_window_is_read_in_windows() {
        let all: Vec<Value> = (0..20_000).map(|number| json!({"number": number, "text": "x\\\""})).collect();
        let found = elements(&json!(all).to_string()).unwrap();
        let found: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn a_truncated_array_is_an_error() {
        for text in ["", "{}", "[", "[1", "[1,", r#"["a"#, r#"["\"#, r#"[{"a":1}"#] {
            assert!(elements(text).is_err(), "{text}");
        }
        assert!(elements(&format!("[\"{}\"]", "x".repeat(2 * LONGEST))).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in r#"\[[{}\[\]",:\\a ]{0,60}"#) {
            let _ = elements(&text);
        }

        #[test]
        fn all_elements_are_there(texts in prop::collection::vec(".{0,9}", 0..9)) {
            let found = elements(&json!(texts).to_string()).unwrap();
            let found: Vec<String> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
