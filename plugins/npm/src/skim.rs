//! Reads a publish document without its tarballs.
//!
//! A tarball stands in the JSON as base64, up to 280 MB in one string. [`Skim`] hands on the document as a stream with a number
//! in the place of each such string, and remembers where the string lies, so that the host can decode it from there. Only the
//! windows around it are ever read. Of a readme, of which only the beginning is shown, no more than that is handed on.

use crate::readme;
use crate::source::Source;
use packhouse_sdk::Error;
use std::io::{self, Read};

/// Bytes of a document, its tarballs left out. One with 2,000 versions, which `npm deprecate` sends whole, has 2 to 8 MB.
pub(crate) const DOCUMENT_LIMIT: u64 = 32 << 20;
/// Bytes of one member at the document's first or second level, as of one version's manifest: what the plugin has to hold
/// in memory several times over while it reads it.
pub(crate) const MEMBER_LIMIT: u64 = 1 << 20;

/// Bytes of a readme, as it stands in the document, that are handed on: what is shown of it, were every byte of that escaped.
const README: u64 = 6 * readme::LIMIT as u64;
/// Bytes after which a readme is too large in which no place is found where it can be cut.
const UNCUT: u64 = 2 * README;

/// Bytes that are read at a time.
const WINDOW: u32 = 64 << 10;
/// Bytes of a key that matter.
const KEY: usize = 32;
/// How deep the data of an attachment lie: document, `_attachments`, attachment.
const DEPTH: usize = 3;

/// Where a string's content lies in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Too many bytes besides the tarballs.
    TooLarge,
    /// A string without an end.
    Broken,
    /// The host's.
    Host(Error),
}

/// The document as a stream.
pub(crate) struct Skim<S> {
    source: S,
    window: Vec<u8>,
    /// What of the window was handed on.
    taken: usize,
    /// Where the window ends in the source.
    offset: u64,
    /// Digits that stand for a string.
    inserted: Vec<u8>,
    place: Place,
    /// Bytes taken of all, and handed on since the last key.
    total: u64,
    member: u64,
    /// The readme that is being read.
    cut: Option<Cut>,
    /// Strings that were left out, by the numbers that stand for them.
    pub(crate) spans: Vec<Span>,
    /// What [`Read`] failed with.
    pub(crate) trouble: Option<Trouble>,
}

/// Where in the document a byte stands.
#[derive(Default)]
struct Place {
    depth: usize,
    /// Of the first levels: whether it is an object, and the key that its member has.
    objects: [bool; DEPTH + 1],
    keys: [Vec<u8>; DEPTH + 1],
    expects_key: bool,
    string: Option<Text>,
}

/// What a string that is being read is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Key { escaped: bool },
    Value { escaped: bool },
}

/// What a byte means to the stream.
#[derive(PartialEq, Eq)]
enum Met {
    Nothing,
    /// A member's key begins, on the first or second level.
    Member,
    /// An attachment's data begin.
    Data,
    /// A readme begins.
    Readme,
}

/// How much of a readme was handed on, and what the last escape in it is.
#[derive(Clone, Copy)]
struct Cut {
    passed: u64,
    /// Bytes since a backslash that begins an escape.
    since: u8,
    /// Of the last escape: whether it has six bytes, its third byte, and whether it is the first half of a character.
    long: bool,
    third: u8,
    half: bool,
}

impl Cut {
    fn new() -> Self {
        Self { passed: 0, since: u8::MAX, long: false, third: 0, half: false }
    }

    /// Whether the text may end before this byte: within no character and no escape, and not between two that make one character.
    fn may_end_before(&self, byte: u8) -> bool {
        let escape = match (self.long, self.half) {
            (_, true) => 12,
            (true, false) => 6,
            (false, false) => 2,
        };
        byte & 0xc0 != 0x80 && self.since >= escape - 1
    }

    /// Takes a byte that is handed on.
    fn take(&mut self, byte: u8) {
        self.passed += 1;
        // Within an escape a second backslash begins none.
        if byte == b'\\' && self.since != 0 {
            // The second half of a character is a part of the first.
            if !(self.half && self.since == 5) {
                (self.since, self.half) = (0, false);
            } else {
                self.since = 6;
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

impl Place {
    fn take(&mut self, byte: u8) -> Met {
        if let Some(text) = self.string {
            self.within(text, byte);
            return Met::Nothing;
        }
        match byte {
            b'"' => return self.string_begins(),
            b'{' | b'[' => {
                self.depth += 1;
                if let Some(object) = self.objects.get_mut(self.depth) {
                    *object = byte == b'{';
                }
                self.expects_key = byte == b'{' && self.depth <= DEPTH;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.expects_key = false;
            }
            b',' => self.expects_key = self.in_object(),
            _ => {}
        }
        Met::Nothing
    }

    fn in_object(&self) -> bool {
        self.objects.get(self.depth).copied().unwrap_or(false)
    }

    fn string_begins(&mut self) -> Met {
        if self.expects_key && self.in_object() {
            self.expects_key = false;
            self.string = Some(Text::Key { escaped: false });
            self.keys.get_mut(self.depth).map(Vec::clear);
            return if self.depth < DEPTH { Met::Member } else { Met::Nothing };
        }
        self.string = Some(Text::Value { escaped: false });
        let within =
            |depth: usize, key: &str| self.keys.get(depth).is_some_and(|found| found == key.as_bytes());
        let objects = self.objects.iter().skip(1).take(self.depth).all(|object| *object);
        let deep = self.depth == DEPTH && objects;
        let of_version = deep && within(1, "versions") && within(DEPTH, "readme");
        match () {
            () if deep && within(1, "_attachments") && within(DEPTH, "data") => Met::Data,
            () if of_version || (self.depth == 1 && objects && within(1, "readme")) => Met::Readme,
            () => Met::Nothing,
        }
    }

    fn within(&mut self, text: Text, byte: u8) {
        let (escaped, key) = match text {
            Text::Key { escaped } => (escaped, true),
            Text::Value { escaped } => (escaped, false),
        };
        if byte == b'"' && !escaped {
            self.string = None;
            return;
        }
        if key && let Some(found) = self.keys.get_mut(self.depth).filter(|found| found.len() < KEY) {
            found.push(byte);
        }
        let escaped = byte == b'\\' && !escaped;
        self.string = Some(if key { Text::Key { escaped } } else { Text::Value { escaped } });
    }
}

impl<S: Source> Skim<S> {
    /// The document in these bytes, of at most [`DOCUMENT_LIMIT`] besides its tarballs.
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            window: Vec::new(),
            taken: 0,
            offset: 0,
            inserted: Vec::new(),
            place: Place::default(),
            total: 0,
            member: 0,
            cut: None,
            spans: Vec::new(),
            trouble: None,
        }
    }

    /// The next byte of the stream; none at its end.
    fn next(&mut self) -> Result<Option<u8>, Trouble> {
        if let Some(digit) = self.inserted.pop() {
            return Ok(Some(digit));
        }
        let Some(byte) = self.byte()? else { return Ok(None) };
        if let Some(cut) = self.cut {
            return self.of_readme(cut, byte);
        }
        self.member += 1;
        match self.place.take(byte) {
            Met::Member => self.member = 0,
            Met::Data if self.leave_out()? => return self.next(),
            Met::Readme => self.cut = Some(Cut::new()),
            _ => {}
        }
        if self.member > MEMBER_LIMIT {
            return Err(Trouble::TooLarge);
        }
        Ok(Some(byte))
    }

    /// The next byte of the source; none at its end.
    fn byte(&mut self) -> Result<Option<u8>, Trouble> {
        if self.taken == self.window.len() {
            self.window = self.source.read_at(self.offset, WINDOW).map_err(Trouble::Host)?;
            self.offset += self.window.len() as u64;
            self.taken = 0;
        }
        let Some(byte) = self.window.get(self.taken).copied() else { return Ok(None) };
        self.taken += 1;
        self.total += 1;
        if self.total > DOCUMENT_LIMIT {
            return Err(Trouble::TooLarge);
        }
        Ok(Some(byte))
    }

    /// Hands on a byte of a readme, or once enough of it was, the quote that ends it.
    fn of_readme(&mut self, mut cut: Cut, byte: u8) -> Result<Option<u8>, Trouble> {
        let mut byte = byte;
        let ends = cut.passed >= README && cut.may_end_before(byte);
        self.place.take(byte);
        while ends && self.place.string.is_some() {
            let Some(next) = self.byte()? else { return Ok(None) };
            self.place.take(next);
            byte = next;
        }
        cut.take(byte);
        self.cut = Some(cut).filter(|_| self.place.string.is_some());
        if cut.passed > UNCUT { Err(Trouble::TooLarge) } else { Ok(Some(byte)) }
    }

    /// Leaves out the string that begins here, unless it is text in which a quote is escaped: a bundle of signatures, which is
    /// small and is read like the rest.
    fn leave_out(&mut self) -> Result<bool, Trouble> {
        let start = self.offset - (self.window.len() - self.taken) as u64;
        let end = self.source.find(b'"', start).map_err(Trouble::Host)?.ok_or(Trouble::Broken)?;
        let last =
            if end > start { self.source.read_at(end - 1, 1).map_err(Trouble::Host)? } else { Vec::new() };
        if last.first() == Some(&b'\\') {
            return Ok(false);
        }
        self.inserted = self.spans.len().to_string().into_bytes();
        self.inserted.reverse();
        self.spans.push(Span { start, end });
        self.place.string = None;
        (self.offset, self.taken) = (end + 1, 0);
        self.window.clear();
        Ok(true)
    }
}

impl<S: Source> Read for Skim<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for (at, slot) in buffer.iter_mut().enumerate() {
            match self.next() {
                Ok(Some(byte)) => *slot = byte,
                Ok(None) => return Ok(at),
                Err(trouble) => {
                    self.trouble = Some(trouble);
                    return Err(io::Error::other("the document cannot be read"));
                }
            }
        }
        Ok(buffer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn skimmed(text: &str) -> (String, Vec<String>) {
        let mut skim = Skim::new(text.as_bytes());
        let mut out = String::new();
        skim.read_to_string(&mut out).unwrap();
        let cut = |span: &Span| text[span.start as usize..span.end as usize].to_owned();
        (out, skim.spans.iter().map(cut).collect())
    }

    fn trouble(text: &str) -> Option<Trouble> {
        let mut skim = Skim::new(text.as_bytes());
        let _ = io::copy(&mut skim, &mut io::sink());
        skim.trouble
    }

    #[test]
    fn only_the_data_of_attachments_are_left_out() {
        for (text, expected, spans) in [
            (
                r#"{"name":"data","_attachments":{"a.tgz":{"data":"AAA=","length":2},"b":{"x":"data","data":""}}}"#,
                r#"{"name":"data","_attachments":{"a.tgz":{"data":0,"length":2},"b":{"x":"data","data":1}}}"#,
                vec!["AAA=", ""],
            ),
            (
                r#"{"_attachments":{"a":{"data":"{\"x\":1}"}}}"#,
                r#"{"_attachments":{"a":{"data":"{\"x\":1}"}}}"#,
                vec![],
            ),
            (r#"{"x":{"a":{"data":"A"}},"data":"B"}"#, r#"{"x":{"a":{"data":"A"}},"data":"B"}"#, vec![]),
            (r#"{"_attachments":[{"data":"A"}]}"#, r#"{"_attachments":[{"data":"A"}]}"#, vec![]),
            (
                r#"{"_attachments":{"a":{"n":{"data":"A"},"data":"B"}}}"#,
                r#"{"_attachments":{"a":{"n":{"data":"A"},"data":0}}}"#,
                vec!["B"],
            ),
            (
                r#"{"_attachments" : { "a\"b" : { "data" : "B" } } }"#,
                r#"{"_attachments" : { "a\"b" : { "data" : 0 } } }"#,
                vec!["B"],
            ),
        ] {
            let (out, found) = skimmed(text);
            assert_eq!(
                (out.as_str(), found),
                (expected, spans.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_long_string_is_found_across_windows() {
        let data = "A".repeat(3 * WINDOW as usize + 1);
        let text = json!({"a": "x".repeat(100), "_attachments": {"t": {"data": data, "length": 1}}, "z": 1})
            .to_string();
        let (out, found) = skimmed(&text);
        assert_eq!(found, [data]);
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&document["_attachments"]["t"]["data"], &document["z"]), (&json!(0), &json!(1)));
    }

    #[test]
    fn what_is_too_large_or_broken_is_told() {
        assert_eq!(trouble(r#"{"_attachments":{"a":{"data":"AAAA"#), Some(Trouble::Broken));
        let description = json!({"description": "x".repeat(MEMBER_LIMIT as usize)}).to_string();
        assert_eq!(trouble(&description), Some(Trouble::TooLarge));
        let versions: serde_json::Map<String, Value> =
            (0..40).map(|n| (n.to_string(), json!("x".repeat(MEMBER_LIMIT as usize - 100)))).collect();
        assert_eq!(trouble(&json!({"versions": versions}).to_string()), Some(Trouble::TooLarge));
        assert_eq!(trouble(&json!({"versions": {"1": "x", "2": "y"}}).to_string()), None);
    }

    #[test]
    fn a_long_readme_is_cut() {
        // What a text is made of, as it stands in a document: escaped by hand, since some clients escape all that is not ASCII.
        for piece in
            ["x", "é", "漢", "\\n", "\\u00e9", "\\ud83d\\ude00", "\\\\", "a\\\"b", "🎉 \\uD83D\\uDE00"]
        {
            for place in ["{\"readme\":\"@\",\"z\":1}", "{\"versions\":{\"1\":{\"readme\":\"@\",\"z\":1}}}"] {
                let text = place.replace('@', &piece.repeat(2 * README as usize / piece.len() + 7));
                let (out, _) = skimmed(&text);
                let document: Value =
                    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{piece}: {error}"));
                let found = document.pointer("/versions/1").unwrap_or(&document);
                let kept = found["readme"].as_str().unwrap();
                let all: String = serde_json::from_str(&format!("\"{}\"", piece.repeat(kept.len()))).unwrap();
                assert!(
                    all.starts_with(kept) && kept.len() >= readme::LIMIT,
                    "{piece}: {} bytes",
                    kept.len()
                );
                assert!(out.len() < text.len() && found["z"] == 1, "{piece}");
            }
        }
        let elsewhere =
            json!({"versions": {"1": {"x": {"readme": "x".repeat(2 * README as usize)}}}}).to_string();
        assert_eq!(skimmed(&elsewhere).0, elsewhere);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let mut skim = Skim::new(bytes.as_slice());
            let _ = io::copy(&mut skim, &mut io::sink());
        }

        #[test]
        fn any_shape_is_read(text in r#"[{}\[\]",:\\a_]{0,60}"#) {
            let mut skim = Skim::new(text.as_bytes());
            let _ = io::copy(&mut skim, &mut io::sink());
        }

        #[test]
        fn the_rest_of_a_document_is_untouched(
            name in ".{0,20}", data in "[A-Za-z0-9+/=]{0,50}", key in ".{0,20}", note in ".{0,20}", text in any::<bool>(),
        ) {
            let sent = json!({"name": name, "_attachments": {key.clone(): {"note": note, "data": data}}, "list": [name, {"data": note}]});
            let body = if text { sent.to_string() } else { serde_json::to_string_pretty(&sent).unwrap() };
            let (out, spans) = skimmed(&body);
            let mut expected = sent;
            expected["_attachments"][&key]["data"] = json!(0);
            prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
            prop_assert_eq!(spans, [data]);
        }
    }
}
