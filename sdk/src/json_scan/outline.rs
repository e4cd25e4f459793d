//! Positions of an object's members. One pass finds them without keeping the bytes. A caller can
//! then parse only the members that it needs of a document of many megabytes.

use super::Span;
use crate::{Error, ReadAt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Bytes to read at a time.
const WINDOW: u32 = 256 << 10;
/// Largest size of a key in bytes.
const KEY: usize = 1 << 10;
/// Largest number of members.
const MEMBERS: usize = 50_000;

/// Member of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Key of the member.
    pub name: String,
    /// Position of the value.
    pub span: Span,
}

/// Members of an object, in their order. Store an outline to avoid another pass over the whole
/// document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// Members of the object itself, without the member that was entered.
    pub members: Vec<Member>,
    /// Members of the member that was entered, if its value is an object.
    pub inner: Vec<Member>,
}

impl Outline {
    /// Returns the position of this member's value.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Span> {
        find(&self.members, name)
    }

    /// Returns the position of the value of this member of the entered object.
    #[must_use]
    pub fn inner(&self, name: &str) -> Option<Span> {
        find(&self.inner, name)
    }
}

fn find(members: &[Member], name: &str) -> Option<Span> {
    members.iter().find(|member| member.name == name).map(|member| member.span)
}

/// Finds the members of the object in these bytes, and the members of the object in its member
/// `enter`. Returns `None` if the bytes are not an object, a member occurs twice, or an object has
/// more than 50,000 members.
///
/// # Errors
/// Returns the host's error.
pub fn outline<S: ReadAt + ?Sized>(source: &S, enter: &str) -> Result<Option<Outline>, Error> {
    let mut scan = Scan::new(enter);
    let mut offset = 0;
    loop {
        let window = source.read_at(offset, WINDOW)?;
        if window.is_empty() {
            return Ok(scan.end());
        }
        if scan.take(offset, &window).is_none() {
            return Ok(None);
        }
        offset += window.len() as u64;
    }
}

/// Finds the members of the object in these bytes like [`outline`], without entering any member.
#[must_use]
pub fn members(bytes: &[u8]) -> Option<Vec<Member>> {
    let mut scan = Scan::new("");
    scan.take(0, bytes)?;
    Some(scan.end()?.members)
}

/// Token that the pass expects next, at the level whose members are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Key,
    Colon,
    Value,
    /// The end of a value that began at this offset.
    End(u64),
    /// The token after the entered member.
    Left,
}

struct Scan<'a> {
    enter: &'a str,
    found: Outline,
    names: BTreeSet<String>,
    inner_names: BTreeSet<String>,
    depth: usize,
    /// Depth at which members are collected: 1, or 2 within the entered member.
    level: usize,
    awaits: Awaits,
    string: bool,
    escaped: bool,
    /// Key as written in the document, without its opening quote.
    key: Vec<u8>,
    key_under_way: bool,
}

impl<'a> Scan<'a> {
    fn new(enter: &'a str) -> Self {
        Self {
            enter,
            found: Outline::default(),
            names: BTreeSet::new(),
            inner_names: BTreeSet::new(),
            depth: 0,
            level: 1,
            awaits: Awaits::Key,
            string: false,
            escaped: false,
            key: Vec::new(),
            key_under_way: false,
        }
    }

    fn end(self) -> Option<Outline> {
        (self.depth == 0 && self.awaits == Awaits::Left && !self.string).then_some(self.found)
    }

    /// Processes the bytes that begin at `offset`.
    fn take(&mut self, offset: u64, bytes: &[u8]) -> Option<()> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.string {
                at += self.within(bytes.get(at..)?)?;
                continue;
            }
            self.outside(offset + at as u64, *byte)?;
            at += 1;
        }
        Some(())
    }

    /// Processes bytes of a string, and returns the number of processed bytes.
    fn within(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut length = 1;
        if self.escaped {
            self.escaped = false;
        } else {
            let plain = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            match plain.and_then(|at| bytes.get(at)) {
                None => length = bytes.len(),
                Some(byte) => {
                    length = plain? + 1;
                    self.escaped = *byte == b'\\';
                    self.string = self.escaped;
                }
            }
        }
        if self.key_under_way {
            self.key.extend_from_slice(bytes.get(..length)?);
            self.key_under_way = self.string;
        }
        (self.key.len() <= KEY).then_some(length)
    }

    fn outside(&mut self, at: u64, byte: u8) -> Option<()> {
        if self.depth > self.level {
            match byte {
                b'"' => self.string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            return Some(());
        }
        match (byte, self.awaits) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (b'{', Awaits::Key) if self.depth == 0 => self.depth = 1,
            (_, Awaits::Key) if self.depth == 0 => return None,
            (_, Awaits::Left) if self.depth == 0 => return None,
            (b'"', Awaits::Key) => {
                (self.string, self.key_under_way) = (true, true);
                self.key.clear();
                self.awaits = Awaits::Colon;
            }
            (b':', Awaits::Colon) => self.awaits = Awaits::Value,
            (_, Awaits::Value) => self.value(at, byte)?,
            (b',', Awaits::End(_) | Awaits::Left) => self.member(at, Awaits::Key)?,
            (b'}', Awaits::End(_) | Awaits::Left) => self.leave(at)?,
            (b'}', Awaits::Key) if self.is_empty() => self.leave(at)?,
            (b'"', Awaits::End(_)) => return None,
            (_, Awaits::End(_)) => {}
            _ => return None,
        }
        Some(())
    }

    /// True if the object that ends here has no members. If it has members, the bracket stands
    /// after a comma, which is an error.
    fn is_empty(&self) -> bool {
        let names = if self.level == 1 { &self.names } else { &self.inner_names };
        names.is_empty()
    }

    fn value(&mut self, at: u64, byte: u8) -> Option<()> {
        let entered = self.level == 1 && byte == b'{' && self.name()? == self.enter;
        self.awaits = Awaits::End(at);
        match byte {
            b'"' => self.string = true,
            b'{' if entered => {
                self.remember()?;
                (self.depth, self.level, self.awaits) = (2, 2, Awaits::Key);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' | b',' | b':' => return None,
            _ => {}
        }
        Some(())
    }

    /// Returns the unescaped key.
    fn name(&self) -> Option<String> {
        let text = core::str::from_utf8(&self.key).ok()?.strip_suffix('"')?;
        if !text.contains('\\') {
            return Some(text.to_owned());
        }
        serde_json::from_str(&format!("\"{text}\"")).ok()
    }

    /// Records the key and returns it. `None` if the object already has this key or too many
    /// members.
    fn remember(&mut self) -> Option<String> {
        let name = self.name()?;
        let names = if self.level == 1 { &mut self.names } else { &mut self.inner_names };
        (names.len() < MEMBERS && names.insert(name.clone())).then_some(name)
    }

    /// Adds the member whose value ends at `at`, and sets the token that is expected next.
    fn member(&mut self, at: u64, then: Awaits) -> Option<()> {
        if let Awaits::End(start) = self.awaits {
            let name = self.remember()?;
            let members = if self.level == 1 { &mut self.found.members } else { &mut self.found.inner };
            members.push(Member { name, span: Span { start, end: at } });
        }
        self.awaits = then;
        Some(())
    }

    fn leave(&mut self, at: u64) -> Option<()> {
        self.member(at, Awaits::Left)?;
        self.depth -= 1;
        self.level = 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    type Texts = Vec<(String, String)>;

    fn texts(text: &str, members: &[Member]) -> Texts {
        let cut = |span: &Span| text[span.start as usize..span.end as usize].trim().to_owned();
        members.iter().map(|member| (member.name.clone(), cut(&member.span))).collect()
    }

    fn found(text: &str) -> Option<(Texts, Texts)> {
        let outline = outline(text.as_bytes(), "in").unwrap()?;
        Some((texts(text, &outline.members), texts(text, &outline.inner)))
    }

    #[test]
    fn members_are_found_where_they_lie() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        for (text, members, inner) in [
            ("{}", pairs(&[]), pairs(&[])),
            (" { \"a\" : 1 } ", pairs(&[("a", "1")]), pairs(&[])),
            (
                r#"{"a":"}{\"","in":{"1":{"in":[{}]},"2":null},"b":[1,{"c":2}]}"#,
                pairs(&[("a", r#""}{\"""#), ("b", r#"[1,{"c":2}]"#)]),
                pairs(&[("1", r#"{"in":[{}]}"#), ("2", "null")]),
            ),
            (r#"{"in":{},"x\u0041\"":true}"#, pairs(&[("xA\"", "true")]), pairs(&[])),
            (r#"{"in":[1]}"#, pairs(&[("in", "[1]")]), pairs(&[])),
            (r#"{"x":{"in":{"a":1}}}"#, pairs(&[("x", r#"{"in":{"a":1}}"#)]), pairs(&[])),
        ] {
            assert_eq!(found(text), Some((members, inner)), "{text}");
        }
    }

    #[test]
    fn other_documents_than_objects_have_no_outline() {
        for text in [
            "",
            "1",
            "[]",
            "<html>",
            "{",
            "{}}",
            "{} {}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":\"",
            "{\"a\":1,\"a\":2}",
            "{\"in\":{\"a\":1,\"a\":2}}",
            "{\"in\":{},\"in\":{}}",
            "{\"in\":{\"a\":1,}}",
            "{\"a\" 1}",
            "{\"a\":1 \"b\":2}",
            "{,}",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn all_members_are_found(
            value in prop::collection::btree_map(".{0,6}", "[a-z\"\\\\{}\\[\\],: ]{0,12}", 0..6), pretty in any::<bool>(),
        ) {
            let document = serde_json::json!({"in": value, "after": value.len()});
            let text = if pretty { serde_json::to_string_pretty(&document).unwrap() } else { document.to_string() };
            let (members, inner) = found(&text).unwrap();
            prop_assert_eq!(members, [("after".to_owned(), value.len().to_string())]);
            let read = inner.iter().map(|(name, text)| (name.clone(), serde_json::from_str(text).unwrap())).collect();
            prop_assert_eq!(value, read);
        }

        #[test]
        fn any_text_is_read(text in r#"[{}\[\]",:\\a1 ]{0,30}"#) {
            if let (Some((members, _)), Ok(Value::Object(object))) = (found(&text), serde_json::from_str(&text)) {
                prop_assert!(members.iter().all(|(name, _)| object.contains_key(name)));
            }
        }

        #[test]
        fn windows_may_end_anywhere(at in 0_usize..60) {
            let text = r#"{"a":"}{\"","in":{"1":{"in":[{}]},"2\\":null},"b":[1,{"c":2}]}"#;
            let (one, two) = text.split_at(at);
            let mut scan = Scan::new("in");
            scan.take(0, one.as_bytes()).unwrap();
            scan.take(at as u64, two.as_bytes()).unwrap();
            let whole = outline(text.as_bytes(), "in").unwrap().unwrap();
            let cut = scan.end().unwrap();
            prop_assert_eq!((cut.members, cut.inner), (whole.members, whole.inner));
        }
    }
}
