//! A document as a stream without its longest strings.
//!
//! A file may stand in JSON as base64, hundreds of megabytes in one string. [`ScanReader`] hands on the document with a number in the
//! place of each such string, and remembers where the string lies, so that the host can decode it from there. Only the windows
//! around it are ever read. Of a text of which no more than the beginning is wanted, no more than that is handed on.

use super::Span;
use super::place::{LEVELS, Place, ScanEvent};
use super::shortening::Shortening;
use crate::{Error, FindAt};
use std::io::{self, Read};

/// Bytes that are read at a time.
const WINDOW: u32 = 64 << 10;

/// The path of a member: a key for each level, at most three. `*` stands for any key.
pub type MemberPath = &'static [&'static str];

/// What of a document is handed on.
#[derive(Clone, Copy, Debug)]
pub struct ScanRules {
    /// Bytes of a document, without what is left out.
    pub document_limit: u64,
    /// Bytes of one member at the document's first or second level: what a plugin has to hold in memory several times over while
    /// it parses it.
    pub member_limit: u64,
    /// Strings that are left out, unless a quote is escaped in them.
    pub left_out: &'static [MemberPath],
    /// Strings of which only the beginning is handed on.
    pub shortened: &'static [MemberPath],
    /// Bytes of such a beginning, as they stand in the document. A string in which no place is found where it can be cut is too
    /// large when it has twice as many.
    pub shortened_to: u64,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// It has more bytes than the rules allow.
    TooLarge,
    /// A string in it has no end.
    Broken,
    /// The host's.
    Host(Error),
}

/// The document as a stream. What [`Read`] fails with says no more than that it failed: [`ScanReader::finish`] says why.
pub struct ScanReader<S> {
    source: S,
    rules: ScanRules,
    window: Vec<u8>,
    /// What of the window was handed on.
    taken: usize,
    /// Where the window ends in the source.
    offset: u64,
    /// Digits that stand for a string, the last first.
    inserted: Vec<u8>,
    place: Place,
    /// Bytes taken of all, and handed on since the last key.
    total: u64,
    member: u64,
    /// The string that is being shortened.
    shortening: Option<Shortening>,
    left_out: Vec<Span>,
    error: Option<ScanError>,
}

impl<S: FindAt> ScanReader<S> {
    /// The document that these bytes are.
    pub fn new(source: S, rules: ScanRules) -> Self {
        Self {
            source,
            rules,
            window: Vec::new(),
            taken: 0,
            offset: 0,
            inserted: Vec::new(),
            place: Place::default(),
            total: 0,
            member: 0,
            shortening: None,
            left_out: Vec::new(),
            error: None,
        }
    }

    /// Where the strings lie that were left out, by the numbers that stand for them.
    ///
    /// # Errors
    /// Why the document could not be read.
    pub fn finish(self) -> Result<Vec<Span>, ScanError> {
        self.error.map_or(Ok(self.left_out), Err)
    }

    /// The next byte of the stream; none at its end.
    fn next(&mut self) -> Result<Option<u8>, ScanError> {
        if let Some(digit) = self.inserted.pop() {
            return Ok(Some(digit));
        }
        let Some(byte) = self.byte()? else { return Ok(None) };
        if let Some(shortening) = self.shortening {
            return self.shorten(shortening, byte);
        }
        self.member += 1;
        match self.place.take(byte) {
            ScanEvent::Key(depth) if depth < LEVELS => self.member = 0,
            ScanEvent::Text if self.is_at(self.rules.left_out) && self.leave_out()? => return self.next(),
            ScanEvent::Text if self.is_at(self.rules.shortened) => {
                self.shortening = Some(Shortening::new());
            }
            _ => {}
        }
        if self.member > self.rules.member_limit {
            return Err(ScanError::TooLarge);
        }
        Ok(Some(byte))
    }

    fn is_at(&self, paths: &[MemberPath]) -> bool {
        paths.iter().any(|path| self.place.is_at(path))
    }

    /// The next byte of the source; none at its end.
    fn byte(&mut self) -> Result<Option<u8>, ScanError> {
        if self.taken == self.window.len() {
            self.window = self.source.read_at(self.offset, WINDOW).map_err(ScanError::Host)?;
            self.offset += self.window.len() as u64;
            self.taken = 0;
        }
        let Some(byte) = self.window.get(self.taken).copied() else { return Ok(None) };
        self.taken += 1;
        self.total += 1;
        if self.total > self.rules.document_limit {
            return Err(ScanError::TooLarge);
        }
        Ok(Some(byte))
    }

    /// Hands on a byte of a string that is shortened, or once enough of it was, the quote that ends it.
    fn shorten(&mut self, mut shortening: Shortening, byte: u8) -> Result<Option<u8>, ScanError> {
        let mut byte = byte;
        let most = self.rules.shortened_to;
        let ends = shortening.passed >= most && shortening.may_end_before(byte);
        self.place.take(byte);
        while ends && self.place.in_string() {
            let Some(next) = self.byte()? else { return Ok(None) };
            self.place.take(next);
            byte = next;
        }
        shortening.take(byte);
        self.shortening = Some(shortening).filter(|_| self.place.in_string());
        if shortening.passed > 2 * most { Err(ScanError::TooLarge) } else { Ok(Some(byte)) }
    }

    /// Leaves out the string that begins here, unless a quote is escaped in it: that is text, and is read like the rest.
    fn leave_out(&mut self) -> Result<bool, ScanError> {
        let start = self.offset - (self.window.len() - self.taken) as u64;
        let end = self.source.find_at(b'"', start).map_err(ScanError::Host)?.ok_or(ScanError::Broken)?;
        let last =
            if end > start { self.source.read_at(end - 1, 1).map_err(ScanError::Host)? } else { Vec::new() };
        if last.first() == Some(&b'\\') {
            return Ok(false);
        }
        self.inserted = self.left_out.len().to_string().into_bytes();
        self.inserted.reverse();
        self.left_out.push(Span { start, end });
        self.place.leave_string();
        (self.offset, self.taken) = (end + 1, 0);
        self.window.clear();
        Ok(true)
    }
}

impl<S: FindAt> Read for ScanReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for (at, slot) in buffer.iter_mut().enumerate() {
            match self.next() {
                Ok(Some(byte)) => *slot = byte,
                Ok(None) => return Ok(at),
                Err(error) => {
                    self.error = Some(error);
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

    const MEMBER_LIMIT: u64 = 1 << 20;
    const BEGINNING: u64 = 384 << 10;
    const RULES: ScanRules = ScanRules {
        document_limit: 32 << 20,
        member_limit: MEMBER_LIMIT,
        left_out: &[&["_attachments", "*", "data"]],
        shortened: &[&["readme"], &["versions", "*", "readme"]],
        shortened_to: BEGINNING,
    };

    fn scanned(text: &str) -> (String, Vec<String>) {
        let mut reader = ScanReader::new(text.as_bytes(), RULES);
        let mut out = String::new();
        reader.read_to_string(&mut out).unwrap();
        let cut = |span: &Span| text[span.start as usize..span.end as usize].to_owned();
        (out, reader.finish().unwrap().iter().map(cut).collect())
    }

    fn fault(text: &str) -> Option<ScanError> {
        let mut reader = ScanReader::new(text.as_bytes(), RULES);
        let _ = io::copy(&mut reader, &mut io::sink());
        reader.finish().err()
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
            let (out, found) = scanned(text);
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
        let (out, found) = scanned(&text);
        assert_eq!(found, [data]);
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&document["_attachments"]["t"]["data"], &document["z"]), (&json!(0), &json!(1)));
    }

    #[test]
    fn what_is_too_large_or_broken_is_told() {
        assert_eq!(fault(r#"{"_attachments":{"a":{"data":"AAAA"#), Some(ScanError::Broken));
        let description = json!({"description": "x".repeat(MEMBER_LIMIT as usize)}).to_string();
        assert_eq!(fault(&description), Some(ScanError::TooLarge));
        let versions: serde_json::Map<String, Value> =
            (0..40).map(|n| (n.to_string(), json!("x".repeat(MEMBER_LIMIT as usize - 100)))).collect();
        assert_eq!(fault(&json!({"versions": versions}).to_string()), Some(ScanError::TooLarge));
        assert_eq!(fault(&json!({"versions": {"1": "x", "2": "y"}}).to_string()), None);
    }

    #[test]
    fn a_long_readme_is_cut() {
        // What a text is made of, as it stands in a document: escaped by hand, since some clients escape all that is not ASCII.
        for piece in
            ["x", "é", "漢", "\\n", "\\u00e9", "\\ud83d\\ude00", "\\\\", "a\\\"b", "🎉 \\uD83D\\uDE00"]
        {
            for place in ["{\"readme\":\"@\",\"z\":1}", "{\"versions\":{\"1\":{\"readme\":\"@\",\"z\":1}}}"] {
                let text = place.replace('@', &piece.repeat(2 * BEGINNING as usize / piece.len() + 7));
                let (out, _) = scanned(&text);
                let document: Value =
                    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{piece}: {error}"));
                let found = document.pointer("/versions/1").unwrap_or(&document);
                let kept = found["readme"].as_str().unwrap();
                let all: String = serde_json::from_str(&format!("\"{}\"", piece.repeat(kept.len()))).unwrap();
                assert!(
                    all.starts_with(kept) && kept.len() >= BEGINNING as usize / 6,
                    "{piece}: {} bytes",
                    kept.len()
                );
                assert!(out.len() < text.len() && found["z"] == 1, "{piece}");
            }
        }
        let elsewhere =
            json!({"versions": {"1": {"x": {"readme": "x".repeat(2 * BEGINNING as usize)}}}}).to_string();
        assert_eq!(scanned(&elsewhere).0, elsewhere);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let mut reader = ScanReader::new(bytes.as_slice(), RULES);
            let _ = io::copy(&mut reader, &mut io::sink());
        }

        #[test]
        fn any_shape_is_read(text in r#"[{}\[\]",:\\a_]{0,60}"#) {
            let mut reader = ScanReader::new(text.as_bytes(), RULES);
            let _ = io::copy(&mut reader, &mut io::sink());
        }

        #[test]
        fn the_rest_of_a_document_is_untouched(
            name in ".{0,20}", data in "[A-Za-z0-9+/=]{0,50}", key in ".{0,20}", note in ".{0,20}", text in any::<bool>(),
        ) {
            let sent = json!({"name": name, "_attachments": {key.clone(): {"note": note, "data": data}}, "list": [name, {"data": note}]});
            let body = if text { sent.to_string() } else { serde_json::to_string_pretty(&sent).unwrap() };
            let (out, spans) = scanned(&body);
            let mut expected = sent;
            expected["_attachments"][&key]["data"] = json!(0);
            prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
            prop_assert_eq!(spans, [data]);
        }
    }
}
