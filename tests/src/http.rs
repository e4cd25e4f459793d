//! A small HTTP/1.1 client over a plain socket. It sends exactly the bytes that the test wrote, and
//! returns the whole answer, including interim answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a socket may be silent before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);
const CHUNK: usize = 256 * 1024;

/// A request as the client sends it. The client adds only `Host`, `Connection: close` and
/// `Content-Length`, unless the test set them.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// Prepends the path `base` to the request's path.
    pub(crate) fn below(self, base: &str) -> Self {
        Self { target: [base, &self.target].concat(), ..self }
    }

    /// A request for `target`, which is sent byte for byte as given.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.into(), target: target.into(), headers: Vec::new(), body: None }
    }

    /// Adds a header line.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        &self.target
    }

    fn says(&self, name: &str) -> bool {
        self.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name))
    }

    /// The head as bytes, for a server at `host`.
    pub fn head(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.says("host") {
            head += &format!("Host: {host}\r\n");
        }
        if !self.says("connection") {
            head += "Connection: close\r\n";
        }
        if let Some(body) = &self.body
            && !self.says("content-length")
            && !self.says("transfer-encoding")
        {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        head.into_bytes()
    }
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status of the final answer.
    pub status: u16,
    /// The text after the status, which some clients show to people.
    pub reason: String,
    /// All header lines, in order, names as sent.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Vec<u8>,
    /// Statuses of the interim answers (`100`) that came first.
    pub interim: Vec<u16>,
}

impl Response {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The content as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    /// A field of a JSON object as text; empty if it is absent or not a string.
    pub fn field(&self, name: &str) -> String {
        self.json().get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    }

    /// Fails the test unless this is the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {:?}\n{}", self.reason, self.headers, self.text());
        self
    }
}

/// One connection, for tests that control the bytes of their requests.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens a connection.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_within(address, PATIENCE)
    }

    /// Opens a connection. Connecting, and each later wait for bytes, may last this long.
    pub fn open_within(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Sends these bytes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends `length` bytes of `source`.
    pub fn send_from(&mut self, source: &mut dyn Read, length: u64) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        let mut left = length;
        while left > 0 {
            let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = source.read(&mut buffer[..want])?;
            assert!(read > 0, "the source ended {left} bytes early");
            self.stream.write_all(&buffer[..read])?;
            left -= read as u64;
        }
        Ok(())
    }

    /// Ends the sending side of the connection.
    pub fn half_close(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    /// Reads the next answer, which may be an interim one, without its content.
    pub fn read_head(&mut self) -> io::Result<Response> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            self.fill()?;
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        parse_head(&String::from_utf8_lossy(&head))
    }

    /// Reads the final answer with its content; `head` is true if the request was a HEAD.
    pub fn read_response(&mut self, head: bool) -> io::Result<Response> {
        let mut body = Vec::new();
        let mut response = self.read_streaming(head, &mut |bytes| body.extend_from_slice(bytes))?;
        response.body = body;
        Ok(response)
    }

    /// Reads the final answer if its first byte arrives within this time.
    pub fn read_response_within(&mut self, time: Duration) -> Option<Response> {
        self.stream.set_read_timeout(Some(time)).expect("a time for reading");
        let begun = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a time for reading");
        begun.ok().filter(|length| *length > 0)?;
        self.read_response(false).ok()
    }

    /// Reads the final answer and passes its content to `sink` as it arrives. Incomplete content is
    /// the error `UnexpectedEof`.
    pub fn read_streaming(&mut self, head: bool, sink: &mut dyn FnMut(&[u8])) -> io::Result<Response> {
        let mut interim = Vec::new();
        let mut response = loop {
            let response = self.read_head()?;
            if response.status >= 200 || response.status == 101 {
                break response;
            }
            interim.push(response.status);
        };
        response.interim = interim;
        if head || response.status == 204 || response.status == 304 {
            return Ok(response);
        }
        if response.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            self.read_chunked(sink)?;
        } else if let Some(length) = response.header("content-length") {
            self.read_exactly(length.parse().map_err(|_| malformed("content-length"))?, sink)?;
        } else {
            self.read_to_close(sink)?;
        }
        Ok(response)
    }

    /// Reads everything until the connection ends; returns true if the peer closed or reset it.
    pub fn closed(&mut self) -> bool {
        self.read_to_close(&mut |_| ()).is_ok()
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = vec![0; 64 * 1024];
        let read = loop {
            match self.stream.read(&mut chunk) {
                // A signal that stops and continues this process interrupts the read. Linux does
                // not restart a read with a timeout, so the loop does.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                read => break read?,
            }
        };
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
        }
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(())
    }

    fn read_exactly(&mut self, length: u64, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut left = length;
        loop {
            let take = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            sink(&self.buffer[..take]);
            self.buffer.drain(..take);
            left -= take as u64;
            if left == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn read_chunked(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            let line = self.read_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| malformed("chunk size"))?;
            if size > 0 {
                self.read_exactly(size, sink)?;
            }
            if self.read_line()?.is_empty() && size == 0 {
                return Ok(());
            }
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.fill()?;
        }
    }

    fn read_to_close(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            sink(&self.buffer);
            self.buffer.clear();
            match self.fill() {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed {what}"))
}

fn parse_head(head: &str) -> io::Result<Response> {
    let mut lines = head.split("\r\n");
    let mut status = lines.next().unwrap_or_default().splitn(3, ' ').skip(1);
    let code = status.next().and_then(|code| code.parse().ok()).ok_or_else(|| malformed("status line"))?;
    let reason = status.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| malformed("header"))?;
    Ok(Response { status: code, reason, headers, body: Vec::new(), interim: Vec::new() })
}

/// Sends requests to one address, each on its own connection. It adds its headers to every request.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
    patience: Duration,
}

impl Client {
    /// A client without a credential.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new(), patience: PATIENCE }
    }

    /// Adds one more header to every request.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds Basic credentials.
    pub fn basic(self, user: &str, password: &str) -> Self {
        let value = basic(user, password);
        self.with("Authorization", &value)
    }

    /// Limits how long the server may be silent.
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Changes the address.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// The address that it sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn complete(&self, mut request: Request) -> Request {
        request.headers.extend(self.headers.iter().cloned());
        request
    }

    /// The bytes of this request's head, with this client's headers.
    pub fn head_bytes(&self, request: Request) -> Vec<u8> {
        self.complete(request).head(&self.address.to_string())
    }

    /// Sends the whole request and reads the answer. Also reads an answer that the server sends
    /// before it has read the whole request.
    pub fn try_send(&self, request: Request) -> io::Result<Response> {
        let request = self.complete(request);
        let mut connection = Connection::open_within(self.address, self.patience)?;
        connection.send(&request.head(&self.address.to_string()))?;
        let sent = request.body.as_deref().map_or(Ok(()), |body| connection.send(body));
        connection.read_response(request.method == "HEAD").map_err(|error| sent.err().unwrap_or(error))
    }

    /// Sends the request; fails the test if there is no answer.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        let line = format!("{} {:.200}", request.method, request.target);
        self.try_send(request).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// GET.
    #[track_caller]
    pub fn get(&self, target: &str) -> Response {
        self.send(Request::new("GET", target))
    }

    /// PUT of these bytes.
    #[track_caller]
    pub fn put(&self, target: &str, body: impl Into<Vec<u8>>) -> Response {
        self.send(Request::new("PUT", target).body(body))
    }

    /// PUT of `length` bytes read from `source`.
    pub fn put_from(&self, target: &str, source: &mut dyn Read, length: u64) -> io::Result<Response> {
        self.send_from(Request::new("PUT", target), source, length)
    }

    /// Sends a request whose body is `length` bytes read from `source`.
    pub fn send_from(&self, request: Request, source: &mut dyn Read, length: u64) -> io::Result<Response> {
        let head = request.header("Content-Length", &length.to_string());
        let mut connection = Connection::open_within(self.address, self.patience)?;
        connection.send(&self.head_bytes(head))?;
        let sent = connection.send_from(source, length);
        connection.read_response(false).map_err(|error| sent.err().unwrap_or(error))
    }

    /// GET that passes the content to `sink` as it arrives.
    pub fn get_to(&self, target: &str, sink: &mut dyn FnMut(&[u8])) -> io::Result<Response> {
        let mut connection = Connection::open_within(self.address, self.patience)?;
        connection.send(&self.head_bytes(Request::new("GET", target)))?;
        connection.read_streaming(false, sink)
    }
}

/// The value of an `Authorization` header with Basic credentials.
pub fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {pair}")
}
