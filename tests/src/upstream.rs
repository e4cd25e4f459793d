//! An upstream that a test scripts. It records its requests. Its answers can be slow, cut off or
//! endless, or never come.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The time after which a shut gate opens by itself, so that a failed test ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running upstream; it ends with the process.
#[derive(Clone, Debug)]
pub struct Upstream {
    address: SocketAddr,
    state: Arc<UpstreamState>,
}

#[derive(Debug, Default)]
struct UpstreamState {
    answers: Mutex<BTreeMap<String, Answer>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    down: AtomicBool,
    /// Number of requests that wait for the first byte of their answer: the current number, and the
    /// largest so far.
    waiting: Mutex<(usize, usize)>,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// `GET`, `HEAD`, `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// A header of the request.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The configured answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    how: Delivery,
    guard: Option<Guard>,
}

/// The `Authorization` that a request must have, and the challenge for a request without it.
#[derive(Clone, Debug)]
struct Guard {
    authorization: String,
    challenge: String,
}

#[derive(Clone, Debug)]
enum Delivery {
    Whole,
    /// Chunks of this many bytes, without a length.
    Chunked(usize),
    /// The connection breaks after this many bytes of the body.
    Cut(usize),
    /// This many bytes of the body, and the rest once the gate is open.
    Gated(usize, Gate),
    /// The body again and again.
    Endless,
    /// No byte until the gate is open.
    Silent(Gate),
}

impl Answer {
    /// An answer with this status and these bytes.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), how: Delivery::Whole, guard: None }
    }

    /// 200 with these bytes.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body)
    }

    /// A redirect.
    pub fn redirect(to: &str) -> Self {
        Self::new(302, "").header("Location", to)
    }

    /// Adds a header line. `Content-Length` replaces the true length; with an empty value, the
    /// answer has no `Content-Length`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends chunks of this many bytes, without a stated length.
    pub fn chunked(self, bytes: usize) -> Self {
        let how = Delivery::Chunked(bytes);
        Self { how, ..self.header("Content-Length", "").header("Transfer-Encoding", "chunked") }
    }

    /// Requires this `Authorization`; other requests get 401 and this challenge.
    pub fn guarded(self, authorization: &str, challenge: &str) -> Self {
        let (authorization, challenge) = (authorization.to_owned(), challenge.to_owned());
        Self { guard: Some(Guard { authorization, challenge }), ..self }
    }

    /// Returns this answer, or 401 if a guard refuses the request.
    fn to(self, request: &ReceivedRequest) -> Self {
        match &self.guard {
            Some(guard) if request.header("authorization") != Some(&guard.authorization) => {
                Self::new(401, "no").header("WWW-Authenticate", &guard.challenge)
            }
            _ => self,
        }
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn cut(self, bytes: usize) -> Self {
        Self { how: Delivery::Cut(bytes), ..self }
    }

    /// Sends this many bytes at once, and the rest once the gate is open.
    pub fn gated(self, bytes: usize, gate: &Gate) -> Self {
        Self { how: Delivery::Gated(bytes, gate.clone()), ..self }
    }

    /// Sends the body again and again, without an end.
    pub fn endless(self) -> Self {
        Self { how: Delivery::Endless, ..self.header("Content-Length", "") }
    }

    /// Sends nothing before the gate is open.
    pub fn silent(self, gate: &Gate) -> Self {
        Self { how: Delivery::Silent(gate.clone()), ..self }
    }

    fn of(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A gate that holds an answer back.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A shut gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(open, PATIENCE, |open| !*open).unwrap());
    }
}

impl Upstream {
    /// Starts an upstream that answers 404 to everything.
    pub fn start() -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts an upstream at this address. At the address of a server that has ended, it records
    /// the requests that clients still send there.
    pub fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("the address is free");
        let upstream = Self { address: listener.local_addr().expect("its address"), state: Arc::default() };
        let state = Arc::clone(&upstream.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || state.serve(stream));
            }
        });
        upstream
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The largest number of requests that waited for a first byte at one time.
    pub fn peak(&self) -> usize {
        self.state.waiting.lock().unwrap().1
    }

    /// Its URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the answer to requests for this target (path and query).
    pub fn on(&self, target: &str, answer: Answer) {
        self.state.answers.lock().unwrap().insert(target.to_owned(), answer);
    }

    /// Answers 404 to this target again.
    pub fn forget(&self, target: &str) {
        self.state.answers.lock().unwrap().remove(target);
    }

    /// Sets whether the upstream closes every connection without an answer.
    pub fn down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Number of requests to this target.
    pub fn count(&self, target: &str) -> usize {
        self.requests().iter().filter(|request| request.target == target).count()
    }
}

impl UpstreamState {
    fn serve(&self, stream: TcpStream) {
        if self.down.load(Ordering::SeqCst) {
            return;
        }
        let Some(request) = read(&stream) else { return };
        let answer = self.answers.lock().unwrap().get(&request.target).cloned();
        let answer = answer.unwrap_or_else(|| Answer::new(404, "nothing is here")).to(&request);
        self.requests.lock().unwrap().push(request.clone());
        self.wait(&answer);
        // A client may close its connection at any time.
        let _ = write(&stream, &request, &answer);
    }

    /// Waits until the answer may begin. This function lowers the number of waiting requests before
    /// the upstream sends the first byte. Otherwise a client could send its next request while the
    /// number still includes this one.
    fn wait(&self, answer: &Answer) {
        let count = |change: &dyn Fn(&mut usize)| {
            let mut waiting = self.waiting.lock().unwrap();
            change(&mut waiting.0);
            waiting.1 = waiting.1.max(waiting.0);
        };
        count(&|now| *now += 1);
        if let Delivery::Silent(gate) = &answer.how {
            gate.pass();
        }
        count(&|now| *now -= 1);
    }
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .iter()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { method, target, headers, body })
}

fn write(mut stream: &TcpStream, request: &ReceivedRequest, answer: &Answer) -> std::io::Result<()> {
    let validator = answer.of("etag").filter(|tag| request.header("if-none-match") == Some(*tag));
    let since = answer.of("last-modified").filter(|date| request.header("if-modified-since") == Some(*date));
    if answer.status == 200 && (validator.is_some() || (answer.of("etag").is_none() && since.is_some())) {
        return stream.write_all(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
    }
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", answer.status);
    for (name, value) in answer.headers.iter().filter(|(_, value)| !value.is_empty()) {
        head += &format!("{name}: {value}\r\n");
    }
    if answer.of("content-length").is_none() {
        head += &format!("Content-Length: {}\r\n", answer.body.len());
    }
    stream.write_all(head.as_bytes())?;
    stream.write_all(b"\r\n")?;
    if request.method == "HEAD" {
        return Ok(());
    }
    match &answer.how {
        Delivery::Whole | Delivery::Silent(_) => stream.write_all(&answer.body),
        Delivery::Chunked(bytes) => {
            for chunk in answer.body.chunks(*bytes) {
                stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Delivery::Cut(bytes) => stream.write_all(&answer.body[..*bytes]),
        Delivery::Endless => loop {
            stream.write_all(&answer.body)?;
        },
        Delivery::Gated(bytes, gate) => {
            stream.write_all(&answer.body[..*bytes])?;
            stream.flush()?;
            gate.pass();
            stream.write_all(&answer.body[*bytes..])
        }
    }
}
