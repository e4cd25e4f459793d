//! Stream of a document without its longest strings.
//!
//! A file can be embedded in JSON as base64, with hundreds of megabytes in one string.
//! [`ScanReader`] replaces each such string by a number and remembers its position. The host can
//! then decode the string from this position of the blob. The plugin reads only the bytes around
//! the string. The reader can also shorten other texts: it then passes on only their beginning.

use super::Span;
use super::position::{LEVELS, Position, ScanEvent};
use super::shortening::Shortening;
use crate::{Error, FindAt};
use std::io::{self, Read};

/// Bytes to read at a time.
const WINDOW: u32 = 64 << 10;

/// Path of a member: a key for each level, at most three. `*` stands for any key.
pub type MemberPath = &'static [&'static str];

/// Rules for passing on a document.
#[derive(Clone, Copy, Debug)]
pub struct ScanRules {
    /// Limit of the document in bytes, not including the strings that are left out.
    pub document_limit: u64,
    /// Limit of one member at the document's first or second level, in bytes. The limit is needed
    /// because a plugin holds several copies of a member in memory while it parses the member.
    pub member_limit: u64,
    /// Paths of strings to leave out. A string that contains an escaped quote is passed on.
    pub left_out: &'static [MemberPath],
    /// Paths of strings to shorten.
    pub shortened: &'static [MemberPath],
    /// Length of a shortened string in bytes, as written in the document. If the string cannot be
    /// cut within twice this length, it is too large.
    pub shortened_to: u64,
}

/// Reason why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// The document exceeds a limit of the rules.
    TooLarge,
    /// A string does not end.
    Broken,
    /// An error of the host.
    Host(Error),
}

/// Document as a stream. The errors of [`Read`] have no details; [`ScanReader::finish`] returns the
/// reason.
pub struct ScanReader<S> {
    source: S,
    rules: ScanRules,
    window: Vec<u8>,
    /// Bytes of the window that were passed on.
    taken: usize,
    /// Offset of the window's end in the source.
    offset: u64,
    /// Digits that replace a string, in reverse order.
    inserted: Vec<u8>,
    position: Position,
    /// Bytes taken in total, and bytes passed on since the last key.
    total: u64,
    member: u64,
    /// State of the string that is being shortened.
    shortening: Option<Shortening>,
    left_out: Vec<Span>,
    error: Option<ScanError>,
}

impl<S: FindAt> ScanReader<S> {
    /// Reads the document in these bytes.
    pub fn new(source: S, rules: ScanRules) -> Self {
        Self {
            source,
            rules,
            window: Vec::new(),
            taken: 0,
            offset: 0,
            inserted: Vec::new(),
            position: Position::default(),
            total: 0,
            member: 0,
            shortening: None,
            left_out: Vec::new(),
            error: None,
        }
    }

    /// Returns the positions of the strings that were left out. The number that replaces a string
    /// is its index.
    ///
    /// # Errors
    /// The reason why the document could not be read.
    pub fn finish(self) -> Result<Vec<Span>, ScanError> {
        self.error.map_or(Ok(self.left_out), Err)
    }

    /// Returns the next byte of the stream; `None` at its end.
    fn next(&mut self) -> Result<Option<u8>, ScanError> {
        if let Some(digit) = self.inserted.pop() {
            return Ok(Some(digit));
        }
        let Some(byte) = self.byte()? else { return Ok(None) };
        if let Some(shortening) = self.shortening {
            return self.shorten(shortening, byte);
        }
        self.member += 1;
        match self.position.take(byte) {
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
        paths.iter().any(|path| self.position.is_at(path))
    }

    /// Returns the next byte of the source; `None` at its end.
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

    /// Passes on a byte of a string that is shortened. After enough bytes, it skips the rest of the
    /// string and passes on the closing quote.
    fn shorten(&mut self, mut shortening: Shortening, byte: u8) -> Result<Option<u8>, ScanError> {
        let mut byte = byte;
        let most = self.rules.shortened_to;
        let ends = shortening.passed >= most && shortening.may_end_before(byte);
        self.position.take(byte);
        while ends && self.position.in_string() {
            let Some(next) = self.byte()? else { return Ok(None) };
            self.position.take(next);
            byte = next;
        }
        shortening.take(byte);
        self.shortening = Some(shortening).filter(|_| self.position.in_string());
        if shortening.passed > 2 * most { Err(ScanError::TooLarge) } else { Ok(Some(byte)) }
    }

    /// Leaves out the string that begins here. Returns false if the string contains an escaped
    /// quote; the caller then passes on the string.
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
        self.position.leave_string();
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
    fn a_document_that_is_too_large_or_broken_is_an_error() {
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
        // Texts as written in a document. The test escapes them by hand, because some clients
        // escape all characters outside ASCII.
        for piece in
            ["x", "é", "漢", "\\n", "\\u00e9", "\\ud83d\\ude00", "\\\\", "a\\\"b", "🎉 \\uD83D\\uDE00"]
        {
            for position in
                ["{\"readme\":\"@\",\"z\":1}", "{\"versions\":{\"1\":{\"readme\":\"@\",\"z\":1}}}"]
            {
                let text = position.replace('@', &piece.repeat(2 * BEGINNING as usize / piece.len() + 7));
                let (out, _) = scanned(&text);
                let document: Value =
                    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{piece}: {error}"));
                let found = document.pointer("/versions/1").unwrap_or(&document);
                let beginning = found["readme"].as_str().unwrap();
                let all: String =
                    serde_json::from_str(&format!("\"{}\"", piece.repeat(beginning.len()))).unwrap();
                assert!(
                    all.starts_with(beginning) && beginning.len() >= BEGINNING as usize / 6,
                    "{piece}: {} bytes",
                    beginning.len()
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
