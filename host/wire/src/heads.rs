//! Scans the request heads of an HTTP/1 connection for errors that hyper accepts: `Content-Length`
//! together with `Transfer-Encoding`, and lines that end in a bare LF. In the first case hyper
//! ignores the length, but a proxy in front may have used it and would then find another end of the
//! request. The scanner replaces the offending byte by NUL, which no head may contain, so that
//! hyper responds with 400 and closes the connection.

use memchr::memchr;

/// Position of the next byte in the stream.
#[derive(Debug)]
enum StreamPosition {
    Head(HeadScanner),
    /// Inside a body with this many bytes left.
    Body(u64),
    /// Not scanned: HTTP/2, or the bytes from the first chunked body on. If a later HTTP/1 request
    /// has both fields, hyper itself closes the connection after this request, as RFC 9112 §6.1
    /// requires.
    Unwatched,
}

#[derive(Debug, Default)]
struct HeadScanner {
    line: LinePrefix,
    lines: u32,
    previous: u8,
    /// `Some` if the head states a length, with the number if it can be parsed.
    length: Option<Option<u64>>,
    chunked: bool,
}

/// Beginning of a line in lower case: enough to recognize the two fields and read a length.
#[derive(Debug)]
struct LinePrefix {
    start: [u8; LINE_START],
    length: usize,
    /// Bytes of the line so far, including bytes that are not stored.
    total: usize,
}

/// Maximum stored bytes of a line. This is enough for `transfer-encoding:`, and for a length of
/// twenty digits after some spaces.
const LINE_START: usize = 64;
const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";
/// First line of the HTTP/2 preface, which HTTP/1 clients never send.
const PREFACE: &[u8] = b"pri * http/2.0";

/// Scanner of the request heads on one connection.
#[derive(Debug)]
pub struct Heads {
    at: StreamPosition,
    has_complete_head: bool,
}

impl Default for Heads {
    fn default() -> Self {
        Self::new()
    }
}

impl Heads {
    /// Creates the scanner of a new connection.
    pub fn new() -> Self {
        Self { at: StreamPosition::Head(HeadScanner::default()), has_complete_head: false }
    }

    /// Returns whether a complete head was received on this connection.
    pub fn has_complete_head(&self) -> bool {
        self.has_complete_head
    }

    /// Returns whether the client may still be sending a body. Closing the socket then could lose
    /// the response.
    pub fn body_outstanding(&self) -> bool {
        !matches!(self.at, StreamPosition::Head(_))
    }

    /// Scans received bytes before hyper parses them, and overwrites the bytes that hyper must
    /// refuse.
    pub fn watch(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match &mut self.at {
                StreamPosition::Unwatched => return,
                StreamPosition::Body(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= here as u64;
                    if *left == 0 {
                        self.at = StreamPosition::Head(HeadScanner::default());
                    }
                    bytes = bytes.get_mut(here..).unwrap_or_default();
                }
                StreamPosition::Head(head) => {
                    let Some((used, next)) = head.scan(bytes) else { return };
                    self.has_complete_head = true;
                    self.at = next;
                    bytes = bytes.get_mut(used..).unwrap_or_default();
                }
            }
        }
    }
}

impl HeadScanner {
    /// Scans up to the end of the head. Returns the number of bytes used and the next position;
    /// `None` if the head is incomplete.
    fn scan(&mut self, bytes: &mut [u8]) -> Option<(usize, StreamPosition)> {
        let mut used = 0;
        while let Some(rest) = bytes.get_mut(used..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest);
            let (line, behind) = rest.split_at_mut_checked(end.unwrap_or(rest.len()))?;
            if let Some(colon) = self.add_to_line(line) {
                return Some((used + colon + 1, StreamPosition::Unwatched));
            }
            used += line.len();
            let Some(newline) = behind.first_mut() else { break };
            used += 1;
            if self.previous != b'\r' {
                *newline = 0;
                return Some((used, StreamPosition::Unwatched));
            }
            self.previous = b'\n';
            if let Some(next) = self.end_line() {
                return Some((used, next));
            }
        }
        None
    }

    /// Adds bytes to the line. If they complete the name of the second of the two conflicting
    /// fields, overwrites its colon and returns the colon's index in `bytes`.
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

    /// Returns whether the field whose colon was reached is the second of the two conflicting
    /// fields.
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

    fn end_line(&mut self) -> Option<StreamPosition> {
        // The line still contains its carriage return.
        let empty = self.line.total <= 1;
        if let Some(value) = self.line.text().strip_prefix(LENGTH) {
            self.length = Some(number(value).filter(|_| self.line.total <= LINE_START));
        }
        let preface = self.lines == 0 && self.line.text().starts_with(PREFACE);
        self.line = LinePrefix::default();
        // hyper skips empty lines before a request line.
        if empty && self.lines == 0 {
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        if preface || (empty && self.chunked) {
            return Some(StreamPosition::Unwatched);
        }
        empty.then(|| match self.length {
            None | Some(Some(0)) => StreamPosition::Head(Self::default()),
            Some(Some(length)) => StreamPosition::Body(length),
            // hyper may accept or refuse this length, so the end of the body is unknown. Scanning
            // ends here.
            Some(None) => StreamPosition::Unwatched,
        })
    }
}

impl Default for LinePrefix {
    fn default() -> Self {
        Self { start: [0; LINE_START], length: 0, total: 0 }
    }
}

impl LinePrefix {
    fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len());
        let free = self.start.get_mut(self.length..).unwrap_or_default();
        let copied = free.len().min(bytes.len());
        if let (Some(free), Some(bytes)) = (free.get_mut(..copied), bytes.get(..copied)) {
            free.copy_from_slice(bytes);
            free.make_ascii_lowercase();
            self.length += copied;
        }
    }

    /// Returns the field name at the start of the line with its colon, if it is one of the two
    /// conflicting fields.
    fn name(&self) -> Option<&'static [u8]> {
        [LENGTH, ENCODING].into_iter().find(|name| self.text().starts_with(name))
    }

    fn text(&self) -> &[u8] {
        self.start.get(..self.length).unwrap_or_default()
    }
}

/// Parses the number in a field's value like hyper does.
fn number(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?.trim();
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that hyper gets when `stream` arrives in pieces of `size` bytes.
    fn watched(stream: &[u8], size: usize) -> (Vec<u8>, Heads) {
        let mut heads = Heads::new();
        let mut output = stream.to_vec();
        for piece in output.chunks_mut(size) {
            heads.watch(piece);
        }
        (output, heads)
    }

    #[test]
    fn the_second_conflicting_field_is_overwritten() {
        let length_first = b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked_first = b"PUT / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\ncontent-length: 5\r\n\r\n";
        for stream in [length_first, chunked_first] {
            for size in [1, 7, 1000] {
                let (output, _) = watched(stream, size);
                assert_eq!(output.iter().filter(|byte| **byte == 0).count(), 1);
                let spoiled = output.iter().position(|byte| *byte == 0).unwrap();
                assert_eq!(stream[spoiled], b':');
            }
        }
    }

    #[test]
    fn a_bare_line_feed_is_overwritten() {
        for stream in [&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], b"GET / HTTP/1.1\r\nHost: a\n\r\n"] {
            assert!(watched(stream, 3).0.contains(&0));
        }
    }

    #[test]
    fn ordinary_traffic_is_unchanged() {
        let body = "Transfer-Encoding: x\nContent-Length: 1\n\n";
        let put = format!("PUT /a HTTP/1.1\r\nContent-Length: {}\r\nX: y\r\n\r\n{body}", body.len());
        let get = "GET /transfer-encoding: HTTP/1.1\r\nHost: a\r\n\r\n";
        let stream = format!("{put}{get}\r\n{put}{get}");
        for size in [1, 2, 50, 1000] {
            let (output, heads) = watched(stream.as_bytes(), size);
            assert_eq!(output, stream.as_bytes());
            assert!(heads.has_complete_head() && !heads.body_outstanding());
        }
    }

    #[test]
    fn a_body_is_outstanding_until_its_last_byte() {
        let head = b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab";
        assert!(watched(head, 10).1.body_outstanding());
        assert!(!watched(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 10).1.body_outstanding());
    }

    #[test]
    fn bytes_after_an_unparsable_length_are_unchanged() {
        for length in [format!("{}5", " ".repeat(100)), "5, 5".to_owned(), "+5".to_owned()] {
            let stream = format!("PUT / HTTP/1.1\r\nContent-Length: {length}\r\n\r\na\nb\nc");
            assert_eq!(watched(stream.as_bytes(), 10).0, stream.as_bytes());
        }
    }

    #[test]
    fn http_2_is_not_scanned() {
        let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n";
        let (output, heads) = watched(stream, 5);
        assert_eq!(output, stream);
        assert!(heads.has_complete_head());
    }
}
