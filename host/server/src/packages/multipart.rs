//! Splits a `multipart/form-data` body (RFC 7578) into staged blobs while it comes in. The parser is a plain state machine
//! over bytes: what it finds does not depend on how they are cut into pieces.

use bytes::{Bytes, BytesMut};
use packhouse_runtime::Part;
use packhouse_store::{Algorithm, Blob, Stager, Store};

use crate::catalogue;
use crate::packages::receive::{Arriving, refused_bytes, too_large};
use crate::packages::shape::Refused;

/// Parts of one form.
const MAX_PARTS: usize = 1000;
/// Bytes of one part's header lines.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Bytes of a boundary, as RFC 2046 has it.
const MAX_BOUNDARY_BYTES: usize = 70;

/// Takes in a form. 400 for a body that is none or is damaged, 413 for more than `limit` bytes together.
pub(crate) async fn receive(
    store: &Store,
    digests: &[Algorithm],
    content_type: &[u8],
    limit: u64,
    body: &mut Arriving,
) -> Result<Vec<Part>, Refused> {
    let boundary = boundary(content_type).ok_or_else(|| damaged("The body is no multipart/form-data."))?;
    let mut splitter = Splitter::new(&boundary);
    let mut parts: Vec<Part> = Vec::new();
    let mut open: Option<(Head, Stager)> = None;
    let mut left = limit;
    while let Some(bytes) = body.next().await? {
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_large(limit))?;
        splitter.push(&bytes);
        while let Some(event) = splitter.next().map_err(damaged)? {
            match event {
                Event::Begin(head) if parts.len() < MAX_PARTS => {
                    open = Some((head, store.stage(digests, limit)))
                }
                Event::Begin(_) => return Err(damaged("The form has too many parts.")),
                Event::Data(bytes) => {
                    if let Some((_, stager)) = &mut open {
                        stager.write(bytes).await.map_err(refused_bytes)?;
                    }
                }
                Event::End => {
                    if let Some((head, stager)) = open.take() {
                        parts.push(head.part(stager.finish().await?));
                    }
                }
            }
        }
    }
    if splitter.is_complete() { Ok(parts) } else { Err(damaged("The form ends too early.")) }
}

fn damaged(reason: &'static str) -> Refused {
    Refused::with(&catalogue::INVALID_REQUEST, reason)
}

/// What a part is called.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Head {
    name: String,
    filename: Option<String>,
    headers: Vec<(String, String)>,
}

impl Head {
    fn part(self, body: Blob) -> Part {
        Part { name: self.name, filename: self.filename, headers: self.headers, body }
    }
}

#[derive(Debug, Eq, PartialEq)]
enum Event {
    Begin(Head),
    Data(Bytes),
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

struct Splitter {
    /// With the line break before it that belongs to it.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: State,
}

impl Splitter {
    fn new(boundary: &str) -> Self {
        // A form may begin with its first boundary, which then has no line break before it.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        Self { delimiter: format!("\r\n--{boundary}").into_bytes(), buffer, state: State::Preamble }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.state != State::Epilogue {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn is_complete(&self) -> bool {
        self.state == State::Epilogue
    }

    /// What can be told by now; none until more bytes come.
    fn next(&mut self) -> Result<Option<Event>, &'static str> {
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
            return if self.buffer.len() > MAX_HEAD_BYTES { Err(LONG_HEAD) } else { Ok(None) };
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

const LONG_HEAD: &str = "A part of the form has too long a head.";

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
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
fn boundary(content_type: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content_type).ok()?;
    let kind = text.split(';').next()?.trim();
    let boundary = parameter(text, "boundary")?;
    let sized = (1..=MAX_BOUNDARY_BYTES).contains(&boundary.len());
    let plain = boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (kind.eq_ignore_ascii_case("multipart/form-data") && sized && plain).then_some(boundary)
}

/// A parameter behind a field's first value, quoted or not. Within quotes `\"` is a quote, and so is `%22`, which is what
/// browsers send; a backslash before anything else is itself, since file names of Windows hold them.
fn parameter(field: &str, wanted: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Heads with their data, when the body comes in pieces of `size` bytes.
    fn split(body: &[u8], boundary: &str, size: usize) -> Result<Vec<(Head, Vec<u8>)>, &'static str> {
        let mut splitter = Splitter::new(boundary);
        let mut found: Vec<(Head, Vec<u8>)> = Vec::new();
        let mut ended = 0;
        for piece in body.chunks(size) {
            splitter.push(piece);
            while let Some(event) = splitter.next()? {
                match event {
                    Event::Begin(head) => found.push((head, Vec::new())),
                    Event::Data(bytes) => found.last_mut().unwrap().1.extend_from_slice(&bytes),
                    Event::End => ended += 1,
                }
            }
        }
        if splitter.is_complete() && ended == found.len() { Ok(found) } else { Err("incomplete") }
    }

    fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, data) in parts {
            body.extend_from_slice(
                format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").as_bytes(),
            );
            body.extend_from_slice(data);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--X--\r\n");
        body
    }

    #[test]
    fn a_form_of_a_real_client_is_split() {
        let body =
            b"preamble\r\n--b1\r\nContent-Disposition: form-data; name=\":action\"\r\n\r\nfile_upload\r\n\
            --b1\r\nContent-Disposition: form-data; name=\"content\"; filename=\"a-1.0.whl\"\r\n\
            Content-Type: application/octet-stream\r\n\r\nPK\r\n--b\r\n\r\n--b1--\r\nepilogue";
        for size in [1, 3, 17, 1000] {
            let parts = split(body, "b1", size).unwrap();
            assert_eq!(parts.len(), 2);
            assert_eq!((parts[0].0.name.as_str(), parts[0].1.as_slice()), (":action", &b"file_upload"[..]));
            assert_eq!(parts[1].0.filename.as_deref(), Some("a-1.0.whl"));
            assert_eq!(parts[1].0.headers[1].1, "application/octet-stream");
            assert_eq!(parts[1].1, b"PK\r\n--b\r\n");
        }
    }

    #[test]
    fn damaged_forms_are_refused() {
        let whole = form(&[("a", b"1")]);
        for end in 0..whole.len() - 4 {
            assert!(split(&whole[..end], "X", 1000).is_err(), "cut at {end}");
        }
        for body in [
            &b"--X\r\nContent-Disposition: form-data\r\n\r\n1\r\n--X--"[..],
            b"--X\r\nno colon\r\n\r\n1\r\n--X--",
            b"--Xother\r\n\r\n1\r\n--X--",
            b"--X\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\n1\r\n--X--",
        ] {
            assert!(split(body, "X", 1000).is_err());
        }
        let long = format!("--X\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(split(long.as_bytes(), "X", 1000), Err(LONG_HEAD));
    }

    #[test]
    fn parameters_are_read_quoted_and_bare() {
        for (field, name, expected) in [
            ("form-data; name=\"a\"", "name", Some("a")),
            ("form-data; filename=\"a;name=b\"; name=c", "name", Some("c")),
            ("form-data; name=\"a\\\"b%22c\\d\"", "name", Some("a\"b\"c\\d")),
            ("form-data; name=\"open", "name", None),
            ("form-data", "name", None),
        ] {
            assert_eq!(parameter(field, name).as_deref(), expected, "{field}");
        }
        assert_eq!(boundary(b"multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(boundary(b"Multipart/Form-Data; charset=x; boundary=\"a b\"").as_deref(), Some("a b"));
        assert_eq!(boundary(b"multipart/mixed; boundary=abc"), None);
        assert_eq!(boundary(b"multipart/form-data; boundary="), None);
    }

    proptest! {
        #[test]
        fn every_form_comes_back_however_it_is_cut(
            parts in proptest::collection::vec(
                ("[a-z]{1,8}", proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'X'), any::<u8>()], 0..60)),
                0..5,
            ),
            size in 1_usize..50,
        ) {
            prop_assume!(parts.iter().all(|(_, data)| find(&[b"\r\n", &data[..], b"\r\n"].concat(), b"\r\n--X").is_none()));
            let given: Vec<(&str, &[u8])> = parts.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect();
            let found = split(&form(&given), "X", size).unwrap();
            let found: Vec<(&str, &[u8])> = found.iter().map(|(head, data)| (head.name.as_str(), data.as_slice())).collect();
            prop_assert_eq!(found, given);
        }

        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..50) {
            let _ = split(&body, "X", size);
        }
    }
}
