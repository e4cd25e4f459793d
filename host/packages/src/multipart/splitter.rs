//! The parser of a form's body: a plain state machine over bytes. What it finds does not depend on how they are cut into
//! pieces. It knows nothing of the server, so that the fuzzer runs it alone.

use bytes::{Bytes, BytesMut};

/// Bytes of one part's header lines.
pub(super) const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Bytes of a boundary, as RFC 2046 has it.
const MAX_BOUNDARY_BYTES: usize = 70;

/// What a part is called.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
}

/// What is found in a form, in its order.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Event {
    /// A part begins.
    Begin(Head),
    /// More of its data.
    Data(Bytes),
    /// It ends.
    End,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Before the first boundary.
    Preamble,
    /// Just behind a boundary.
    Boundary,
    Head,
    Data,
    /// Behind the last boundary.
    Epilogue,
}

/// Takes a body's bytes and tells what they are.
pub(super) struct Splitter {
    /// With the line break before it that belongs to it.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: State,
}

impl Splitter {
    /// For a form with this boundary.
    pub(super) fn new(boundary: &str) -> Self {
        // A form may begin with its first boundary, which then has no line break before it.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        Self { delimiter: format!("\r\n--{boundary}").into_bytes(), buffer, state: State::Preamble }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.state != State::Epilogue {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Whether the last boundary was there.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Epilogue
    }

    /// What can be told by now; none until more bytes come.
    pub(super) fn next(&mut self) -> Result<Option<Event>, &'static str> {
        loop {
            match self.state {
                State::Preamble => {
                    let Some(at) = find(&self.buffer, &self.delimiter) else {
                        self.drop_all_but_a_delimiters_beginning();
                        return Ok(None);
                    };
                    self.take(at + self.delimiter.len());
                    self.state = State::Boundary;
                }
                State::Boundary => match self.buffer.get(..2) {
                    None => return Ok(None),
                    Some(b"--") => self.end(),
                    Some(b"\r\n") => {
                        // The line break stays: an empty head ends with it and one more.
                        self.state = State::Head;
                    }
                    Some(_) => return Err("A boundary of the form is followed by something else."),
                },
                State::Head => return self.head(),
                State::Data => return Ok(self.data()),
                State::Epilogue => return Ok(None),
            }
        }
    }

    fn end(&mut self) {
        self.buffer.clear();
        self.state = State::Epilogue;
    }

    fn take(&mut self, count: usize) -> Bytes {
        self.buffer.split_to(count.min(self.buffer.len())).freeze()
    }

    fn drop_all_but_a_delimiters_beginning(&mut self) {
        let spare = self.buffer.len().saturating_sub(self.delimiter.len());
        self.take(spare);
    }

    fn head(&mut self) -> Result<Option<Event>, &'static str> {
        let Some(at) = find(&self.buffer, b"\r\n\r\n") else {
            // Up to three bytes of the end that is looked for may be here already.
            return if self.buffer.len() > MAX_HEAD_BYTES + 3 { Err(LONG_HEAD) } else { Ok(None) };
        };
        if at > MAX_HEAD_BYTES {
            return Err(LONG_HEAD);
        }
        let lines = self.take(at + 4);
        self.state = State::Data;
        // A part without content has its delimiter's line break right here.
        parse_head(&lines).map(|head| Some(Event::Begin(head)))
    }

    fn data(&mut self) -> Option<Event> {
        let Some(at) = find(&self.buffer, &self.delimiter) else {
            let ready = self.buffer.len().saturating_sub(self.delimiter.len());
            return (ready > 0).then(|| Event::Data(self.take(ready)));
        };
        if at > 0 {
            return Some(Event::Data(self.take(at)));
        }
        self.take(self.delimiter.len());
        self.state = State::Boundary;
        Some(Event::End)
    }
}

pub(super) const LONG_HEAD: &str = "A part of the form has too long a head.";

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

fn parse_head(lines: &[u8]) -> Result<Head, &'static str> {
    let text = std::str::from_utf8(lines).map_err(|_| "A part of the form has a head that is not UTF-8.")?;
    let mut head = Head::default();
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

/// The boundary of a form's content type; none where it is no form.
pub(super) fn boundary(content_type: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content_type).ok()?;
    let kind = text.split(';').next()?.trim();
    let boundary = parameter(text, "boundary")?;
    let sized = (1..=MAX_BOUNDARY_BYTES).contains(&boundary.len());
    let plain = boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (kind.eq_ignore_ascii_case("multipart/form-data") && sized && plain).then_some(boundary)
}

/// A parameter behind a field's first value, quoted or not. Within quotes `\"` is a quote, and so is `%22`, which is what
/// browsers send; a backslash before anything else is itself, since file names of Windows hold them.
pub(super) fn parameter(field: &str, wanted: &str) -> Option<String> {
    let mut rest = field.split_once(';')?.1;
    loop {
        let (name, value) = rest.split_once('=')?;
        let (value, next) = parameter_value(value.trim_start())?;
        if name.trim().eq_ignore_ascii_case(wanted) {
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
