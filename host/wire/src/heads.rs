//! Watches the request heads of an HTTP/1 connection for what hyper would let pass: `Content-Length` together with
//! `Transfer-Encoding` (hyper drops the length and goes on, where a proxy before us may have believed it), and lines that end in a
//! bare LF. The offending byte becomes NUL, which no head may hold, so that hyper itself answers 400 and closes.

use memchr::memchr;

/// Where in the stream the next byte stands.
#[derive(Debug)]
enum At {
    /// In a head.
    Head(Head),
    /// In a body of which so many bytes are still to come.
    Body(u64),
    /// Not watched: HTTP/2, or behind a chunked body. There hyper's own answer stands, which closes the connection after any
    /// request with both fields, as RFC 9112 §6.1 asks.
    Unwatched,
}

#[derive(Debug, Default)]
struct Head {
    line: Line,
    lines: u32,
    previous: u8,
    /// Of the body, where a length is stated; within, where it can be read.
    length: Option<Option<u64>>,
    chunked: bool,
}

/// The beginning of a line, lower-case: enough to know the two fields and the value of one.
#[derive(Debug)]
struct Line {
    start: [u8; LINE_START],
    length: usize,
    /// The bytes of the line so far, also beyond what is kept.
    total: usize,
}

/// `transfer-encoding:` and a length of twenty digits after some spaces fit well.
const LINE_START: usize = 64;
const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";
/// The first line of HTTP/2's preface, which no HTTP/1 client sends.
const PREFACE: &[u8] = b"pri * http/2.0";

/// The state of one connection's stream.
#[derive(Debug)]
pub struct Heads {
    at: At,
    seen_one: bool,
}

impl Default for Heads {
    fn default() -> Self {
        Self::new()
    }
}

impl Heads {
    /// At the beginning of a connection.
    pub fn new() -> Self {
        Self { at: At::Head(Head::default()), seen_one: false }
    }

    /// Whether a whole head has come on this connection.
    pub fn seen_one(&self) -> bool {
        self.seen_one
    }

    /// Whether more of a request's body may be on its way: closing the socket now could cost the client the answer.
    pub fn body_outstanding(&self) -> bool {
        !matches!(self.at, At::Head(_))
    }

    /// Looks at bytes that have just come in, before hyper sees them, and spoils those that must be refused.
    pub fn watch(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match &mut self.at {
                At::Unwatched => return,
                At::Body(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= here as u64;
                    if *left == 0 {
                        self.at = At::Head(Head::default());
                    }
                    bytes = bytes.get_mut(here..).unwrap_or_default();
                }
                At::Head(head) => {
                    let Some((used, next)) = head.scan(bytes) else { return };
                    self.seen_one = true;
                    self.at = next;
                    bytes = bytes.get_mut(used..).unwrap_or_default();
                }
            }
        }
    }
}

impl Head {
    /// Reads on to the end of the head, and says how many bytes that took and what follows; none while it goes on.
    fn scan(&mut self, bytes: &mut [u8]) -> Option<(usize, At)> {
        let mut used = 0;
        while let Some(rest) = bytes.get_mut(used..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest);
            let (line, behind) = rest.split_at_mut_checked(end.unwrap_or(rest.len()))?;
            if let Some(colon) = self.add_to_line(line) {
                return Some((used + colon + 1, At::Unwatched));
            }
            used += line.len();
            let Some(newline) = behind.first_mut() else { break };
            used += 1;
            if self.previous != b'\r' {
                *newline = 0;
                return Some((used, At::Unwatched));
            }
            self.previous = b'\n';
            if let Some(next) = self.end_line() {
                return Some((used, next));
            }
        }
        None
    }

    /// Adds bytes to the line. Where they end the name of the second of the two fields that may not come together, its colon is
    /// spoiled, and its place among the bytes returned.
    fn add_to_line(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let before = self.line.total;
        self.line.push(bytes);
        self.previous = bytes.last().copied().unwrap_or(self.previous);
        let name = self.line.name().filter(|name| name.len() > before)?.len();
        if !self.refuses_field() {
            return None;
        }
        let colon = name - before - 1;
        if let Some(colon) = bytes.get_mut(colon) {
            *colon = 0;
        }
        Some(colon)
    }

    /// At a field's colon: whether this is the second of the two that may not come together.
    fn refuses_field(&mut self) -> bool {
        match self.line.name() {
            Some(LENGTH) => self.chunked,
            Some(ENCODING) => {
                self.chunked = true;
                self.length.is_some()
            }
            _ => false,
        }
    }

    fn end_line(&mut self) -> Option<At> {
        // The carriage return is part of the line.
        let empty = self.line.total <= 1;
        if let Some(value) = self.line.text().strip_prefix(LENGTH) {
            self.length = Some(number(value).filter(|_| self.line.total <= LINE_START));
        }
        let preface = self.lines == 0 && self.line.text().starts_with(PREFACE);
        self.line = Line::default();
        // hyper skips empty lines before a request line.
        if empty && self.lines == 0 {
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        if preface || (empty && self.chunked) {
            return Some(At::Unwatched);
        }
        empty.then(|| match self.length {
            None | Some(Some(0)) => At::Head(Self::default()),
            Some(Some(length)) => At::Body(length),
            // hyper may know it or refuse it; here nothing more is looked at.
            Some(None) => At::Unwatched,
        })
    }
}

impl Default for Line {
    fn default() -> Self {
        Self { start: [0; LINE_START], length: 0, total: 0 }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len());
        let free = self.start.get_mut(self.length..).unwrap_or_default();
        let kept = free.len().min(bytes.len());
        if let (Some(free), Some(bytes)) = (free.get_mut(..kept), bytes.get(..kept)) {
            free.copy_from_slice(bytes);
            free.make_ascii_lowercase();
            self.length += kept;
        }
    }

    /// The name that the line begins with, with its colon, if it is one of the two.
    fn name(&self) -> Option<&'static [u8]> {
        [LENGTH, ENCODING].into_iter().find(|name| self.text().starts_with(name))
    }

    fn text(&self) -> &[u8] {
        self.start.get(..self.length).unwrap_or_default()
    }
}

/// The number in a field's value, as hyper reads one.
fn number(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?.trim();
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hyper sees when `stream` comes in pieces of `size` bytes.
    fn watched(stream: &[u8], size: usize) -> (Vec<u8>, Heads) {
        let mut heads = Heads::new();
        let mut seen = stream.to_vec();
        for piece in seen.chunks_mut(size) {
            heads.watch(piece);
        }
        (seen, heads)
    }

    #[test]
    fn the_second_of_both_fields_is_spoiled() {
        let length_first = b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked_first = b"PUT / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\ncontent-length: 5\r\n\r\n";
        for stream in [length_first, chunked_first] {
            for size in [1, 7, 1000] {
                let (seen, _) = watched(stream, size);
                assert_eq!(seen.iter().filter(|byte| **byte == 0).count(), 1);
                let spoiled = seen.iter().position(|byte| *byte == 0).unwrap();
                assert_eq!(stream[spoiled], b':');
            }
        }
    }

    #[test]
    fn a_bare_line_feed_is_spoiled() {
        for stream in [&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], b"GET / HTTP/1.1\r\nHost: a\n\r\n"] {
            assert!(watched(stream, 3).0.contains(&0));
        }
    }

    #[test]
    fn ordinary_traffic_is_left_as_it_is() {
        let body = "Transfer-Encoding: x\nContent-Length: 1\n\n";
        let put = format!("PUT /a HTTP/1.1\r\nContent-Length: {}\r\nX: y\r\n\r\n{body}", body.len());
        let get = "GET /transfer-encoding: HTTP/1.1\r\nHost: a\r\n\r\n";
        let stream = format!("{put}{get}\r\n{put}{get}");
        for size in [1, 2, 50, 1000] {
            let (seen, heads) = watched(stream.as_bytes(), size);
            assert_eq!(seen, stream.as_bytes());
            assert!(heads.seen_one() && !heads.body_outstanding());
        }
    }

    #[test]
    fn a_body_is_outstanding_until_its_last_byte() {
        let head = b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab";
        assert!(watched(head, 10).1.body_outstanding());
        assert!(!watched(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 10).1.body_outstanding());
    }

    #[test]
    fn behind_a_length_that_cannot_be_read_nothing_is_touched() {
        for length in [format!("{}5", " ".repeat(100)), "5, 5".to_owned(), "+5".to_owned()] {
            let stream = format!("PUT / HTTP/1.1\r\nContent-Length: {length}\r\n\r\na\nb\nc");
            assert_eq!(watched(stream.as_bytes(), 10).0, stream.as_bytes());
        }
    }

    #[test]
    fn http_2_is_not_watched() {
        let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n";
        let (seen, heads) = watched(stream, 5);
        assert_eq!(seen, stream);
        assert!(heads.seen_one());
    }
}
