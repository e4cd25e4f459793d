//! Parser for the body of a form: a state machine over bytes. Its output does not depend on the
//! chunks in which the input arrives. It does not use other parts of the server, so that the fuzzer
//! can run it alone.

use bytes::{Bytes, BytesMut};

/// Maximum size of a part's header lines, in bytes.
pub(super) const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Maximum length of a boundary, in bytes (RFC 2046).
const MAX_BOUNDARY_BYTES: usize = 70;

/// The headers of a part.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct PartHead {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    /// Header lines; names are in lower case.
    pub(super) headers: Vec<(String, String)>,
}

/// An event of the parser. Events come in the order of the form.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum FormEvent {
    Begin(PartHead),
    /// Data of the current part.
    Data(Bytes),
    End,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ParserState {
    Preamble,
    /// Directly after a boundary, before the line break.
    Boundary,
    Head,
    Data,
    Epilogue,
}

/// An incremental parser for the body of a form.
pub(super) struct Splitter {
    /// The boundary with its dashes, preceded by a line break.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: ParserState,
}

impl Splitter {
    /// Creates a parser for this boundary.
    pub(super) fn new(boundary: &str) -> Self {
        // The first boundary may be at the very start of the body, without a line break before it,
        // so the buffer starts with one.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        Self { delimiter: format!("\r\n--{boundary}").into_bytes(), buffer, state: ParserState::Preamble }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.state != ParserState::Epilogue {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Reports whether the closing boundary was parsed.
    pub(super) fn is_complete(&self) -> bool {
        self.state == ParserState::Epilogue
    }

    /// Returns the next event, or `None` until more input arrives.
    pub(super) fn next(&mut self) -> Result<Option<FormEvent>, &'static str> {
        loop {
            match self.state {
                ParserState::Preamble => {
                    let Some(at) = find(&self.buffer, &self.delimiter) else {
                        self.drop_all_but_a_delimiters_beginning();
                        return Ok(None);
                    };
                    self.take(at + self.delimiter.len());
                    self.state = ParserState::Boundary;
                }
                ParserState::Boundary => match self.buffer.get(..2) {
                    None => return Ok(None),
                    Some(b"--") => self.end(),
                    Some(b"\r\n") => {
                        // Keep the line break in the buffer: an empty head ends with two line
                        // breaks, and this is the first one.
                        self.state = ParserState::Head;
                    }
                    Some(_) => return Err("A boundary of the form is followed by unexpected bytes."),
                },
                ParserState::Head => return self.head(),
                ParserState::Data => return Ok(self.data()),
                ParserState::Epilogue => return Ok(None),
            }
        }
    }

    fn end(&mut self) {
        self.buffer.clear();
        self.state = ParserState::Epilogue;
    }

    fn take(&mut self, count: usize) -> Bytes {
        self.buffer.split_to(count.min(self.buffer.len())).freeze()
    }

    fn drop_all_but_a_delimiters_beginning(&mut self) {
        let spare = self.buffer.len().saturating_sub(self.delimiter.len());
        self.take(spare);
    }

    fn head(&mut self) -> Result<Option<FormEvent>, &'static str> {
        let Some(at) = find(&self.buffer, b"\r\n\r\n") else {
            // The buffer may contain up to three bytes of the terminator.
            return if self.buffer.len() > MAX_HEAD_BYTES + 3 { Err(LONG_HEAD) } else { Ok(None) };
        };
        if at > MAX_HEAD_BYTES {
            return Err(LONG_HEAD);
        }
        let lines = self.take(at + 4);
        self.state = ParserState::Data;
        // The delimiter's line break directly follows the head if the part has no content.
        parse_head(&lines).map(|head| Some(FormEvent::Begin(head)))
    }

    fn data(&mut self) -> Option<FormEvent> {
        let Some(at) = find(&self.buffer, &self.delimiter) else {
            let ready = self.buffer.len().saturating_sub(self.delimiter.len());
            return (ready > 0).then(|| FormEvent::Data(self.take(ready)));
        };
        if at > 0 {
            return Some(FormEvent::Data(self.take(at)));
        }
        self.take(self.delimiter.len());
        self.state = ParserState::Boundary;
        Some(FormEvent::End)
    }
}

pub(super) const LONG_HEAD: &str = "A part of the form has a head that is too long.";

pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(rest) = haystack.get(from..) {
        let at = from + rest.iter().position(|byte| *byte == first)?;
        if haystack.get(at..).is_some_and(|rest| rest.starts_with(needle)) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn parse_head(lines: &[u8]) -> Result<PartHead, &'static str> {
    let text = std::str::from_utf8(lines).map_err(|_| "A part of the form has a head that is not UTF-8.")?;
    let mut head = PartHead::default();
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) =
            line.split_once(':').ok_or("A part of the form has a head line without a colon.")?;
        head.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let disposition = head.headers.iter().find(|(name, _)| name == "content-disposition");
    let disposition = disposition.map(|(_, value)| value.clone()).unwrap_or_default();
    head.name = parameter(&disposition, "name").ok_or("A part of the form has no name.")?;
    head.filename = parameter(&disposition, "filename");
    Ok(head)
}

/// Returns the boundary in the content type of a form, or `None` for other content types.
pub(super) fn boundary(content_type: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content_type).ok()?;
    let kind = text.split(';').next()?.trim();
    let boundary = parameter(text, "boundary")?;
    let sized = (1..=MAX_BOUNDARY_BYTES).contains(&boundary.len());
    let plain = boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (kind.eq_ignore_ascii_case("multipart/form-data") && sized && plain).then_some(boundary)
}

/// Returns a parameter after a field's first value, quoted or not. Inside quotes, `\"` stands for a
/// quote, and so does `%22`, which browsers send. Any other backslash is literal, because Windows
/// file names contain backslashes.
pub(super) fn parameter(field: &str, expected: &str) -> Option<String> {
    let mut rest = field.split_once(';')?.1;
    loop {
        let (name, value) = rest.split_once('=')?;
        let (value, next) = parameter_value(value.trim_start())?;
        if name.trim().eq_ignore_ascii_case(expected) {
            return Some(value);
        }
        rest = next.split_once(';')?.1;
    }
}

fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return Some((text.get(..end)?.trim().to_owned(), text.get(end..)?));
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value.replace("%22", "\""), quoted.get(at + 1..)?)),
            '\\' if letters.peek().is_some_and(|(_, next)| *next == '"') => {
                value.push('"');
                letters.next();
            }
            other => value.push(other),
        }
    }
    None
}
