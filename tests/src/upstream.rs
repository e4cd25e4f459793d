//! An upstream in the tests' hands: it answers what it was told to, slowly, cut off, endlessly or not at all, and remembers what
//! it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long a gate stays shut for a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running upstream. It ends with the process; `down` makes it refuse every request.
#[derive(Clone, Debug)]
pub struct Upstream {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: Mutex<BTreeMap<String, Answer>>,
    seen: Mutex<Vec<Seen>>,
    down: AtomicBool,
    /// Requests that have heard nothing yet: as many as there are, and were at most.
    waiting: Mutex<(usize, usize)>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET`, `HEAD`, `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Seen {
    /// A header of it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    how: How,
    guard: Option<Guard>,
}

/// What a request must show, and what is answered to one that does not.
#[derive(Clone, Debug)]
struct Guard {
    authorization: String,
    challenge: String,
}

#[derive(Clone, Debug)]
enum How {
    Whole,
    /// In chunks of so many bytes, without a length.
    Chunked(usize),
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// So many bytes of the body, and the rest once the gate is open.
    Gated(usize, Gate),
    /// The body again and again.
    Endless,
    /// Nothing at all, until the gate is open.
    Silent(Gate),
}

impl Answer {
    /// A status with these bytes.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), how: How::Whole, guard: None }
    }

    /// 200 with these bytes.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body)
    }

    /// A redirect.
    pub fn redirect(to: &str) -> Self {
        Self::new(302, "").header("Location", to)
    }

    /// A header line. One for `Content-Length` stands in the place of the true one; an empty one leaves it out.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In chunks of so many bytes, and its length is not told.
    pub fn chunked(self, bytes: usize) -> Self {
        let how = How::Chunked(bytes);
        Self { how, ..self.header("Content-Length", "").header("Transfer-Encoding", "chunked") }
    }

    /// Only for requests with this `Authorization`; others get 401 and this challenge.
    pub fn guarded(self, authorization: &str, challenge: &str) -> Self {
        let (authorization, challenge) = (authorization.to_owned(), challenge.to_owned());
        Self { guard: Some(Guard { authorization, challenge }), ..self }
    }

    /// What this request gets.
    fn to(self, seen: &Seen) -> Self {
        match &self.guard {
            Some(guard) if seen.header("authorization") != Some(&guard.authorization) => {
                Self::new(401, "no").header("WWW-Authenticate", &guard.challenge)
            }
            _ => self,
        }
    }

    /// The connection breaks after so many bytes of the body.
    pub fn cut(self, bytes: usize) -> Self {
        Self { how: How::Cut(bytes), ..self }
    }

    /// So many bytes at once, and the rest once the gate is open.
    pub fn gated(self, bytes: usize, gate: &Gate) -> Self {
        Self { how: How::Gated(bytes, gate.clone()), ..self }
    }

    /// The body again and again, without an end.
    pub fn endless(self) -> Self {
        Self { how: How::Endless, ..self.header("Content-Length", "") }
    }

    /// Says nothing before the gate is open.
    pub fn silent(self, gate: &Gate) -> Self {
        Self { how: How::Silent(gate.clone()), ..self }
    }

    fn of(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Holds an answer back.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A shut one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything through from now on.
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
    /// Starts one that knows nothing: it answers 404.
    pub fn start() -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts one at the address of a server that is gone, to see who still asks it.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As many requests as ever waited for a first byte at one time.
    pub fn peak(&self) -> usize {
        self.state.waiting.lock().unwrap().1
    }

    /// Its address, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers requests to this target (path and query) so from now on.
    pub fn on(&self, target: &str, answer: Answer) {
        self.state.answers.lock().unwrap().insert(target.to_owned(), answer);
    }

    /// Answers 404 to this target again.
    pub fn forget(&self, target: &str) {
        self.state.answers.lock().unwrap().remove(target);
    }

    /// Breaks every connection from now on, or no longer.
    pub fn down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// How many of them were to this target.
    pub fn count(&self, target: &str) -> usize {
        self.seen().iter().filter(|seen| seen.target == target).count()
    }
}

impl State {
    fn serve(&self, stream: TcpStream) {
        if self.down.load(Ordering::SeqCst) {
            return;
        }
        let Some(seen) = read(&stream) else { return };
        let answer = self.answers.lock().unwrap().get(&seen.target).cloned();
        let answer = answer.unwrap_or_else(|| Answer::new(404, "nothing is here")).to(&seen);
        self.seen.lock().unwrap().push(seen.clone());
        self.wait(&answer);
        // Whoever hangs up has its reasons.
        let _ = write(&stream, &seen, &answer);
    }

    /// Until something is said. It is counted before that: nobody can ask again on hearing it, and be counted beside it.
    fn wait(&self, answer: &Answer) {
        let count = |change: &dyn Fn(&mut usize)| {
            let mut waiting = self.waiting.lock().unwrap();
            change(&mut waiting.0);
            waiting.1 = waiting.1.max(waiting.0);
        };
        count(&|now| *now += 1);
        if let How::Silent(gate) = &answer.how {
            gate.pass();
        }
        count(&|now| *now -= 1);
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
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
    Some(Seen { method, target, headers, body })
}

fn write(mut stream: &TcpStream, seen: &Seen, answer: &Answer) -> std::io::Result<()> {
    let validator = answer.of("etag").filter(|tag| seen.header("if-none-match") == Some(*tag));
    let since = answer.of("last-modified").filter(|date| seen.header("if-modified-since") == Some(*date));
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
    if seen.method == "HEAD" {
        return Ok(());
    }
    match &answer.how {
        How::Whole | How::Silent(_) => stream.write_all(&answer.body),
        How::Chunked(bytes) => {
            for chunk in answer.body.chunks(*bytes) {
                stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        How::Cut(bytes) => stream.write_all(&answer.body[..*bytes]),
        How::Endless => loop {
            stream.write_all(&answer.body)?;
        },
        How::Gated(bytes, gate) => {
            stream.write_all(&answer.body[..*bytes])?;
            stream.flush()?;
            gate.pass();
            stream.write_all(&answer.body[*bytes..])
        }
    }
}
