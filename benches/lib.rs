//! What the benchmarks share: a load of keep-alive GETs from one thread, and the CPU time that a process has used.
//!
//! Only ratios of one run are printed as results: absolute figures move with whatever else the machine does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be run must stop loudly"
)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use packhouse_tests::server::free_port;

/// What one round of load showed.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Answers a second, all connections together.
    pub rate: f64,
    /// CPU time of the server for each answer, in µs.
    pub cpu_us: f64,
}

/// Sends the same GET over `connections` kept connections for about `time`, each connection in a thread of its own, and
/// demands that every answer has the same length as the first and the status 200.
pub fn load(address: SocketAddr, pid: u32, request: &str, connections: usize, time: Duration) -> Round {
    let length = answer_length(address, request);
    let (before, start) = (cpu_seconds(pid), Instant::now());
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| repeat(address, request, length, start + time)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a connection failed")).collect()
    });
    let answers = counts.iter().sum::<u64>() as f64;
    Round {
        rate: answers / start.elapsed().as_secs_f64(),
        cpu_us: (cpu_seconds(pid) - before) / answers * 1e6,
    }
}

fn repeat(address: SocketAddr, request: &str, length: usize, until: Instant) -> u64 {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.set_nodelay(true).expect("nodelay");
    let mut answer = vec![0; length];
    let mut count = 0;
    while Instant::now() < until {
        stream.write_all(request.as_bytes()).expect("send");
        stream.read_exact(&mut answer).expect("an answer of the same length");
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        count += 1;
    }
    count
}

/// Head and body of one answer, in bytes.
fn answer_length(address: SocketAddr, request: &str) -> usize {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).expect("send");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("read");
    let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{}", head.lines().next().unwrap_or_default());
    // A kept connection's answer lacks the line that says it is closed.
    answer.len() - if head.contains("connection: close\r\n") { "connection: close\r\n".len() } else { 0 }
}

/// CPU time of a process so far, in seconds, from the kernel's ticks (100 a second).
pub fn cpu_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let fields: Vec<&str> = text[text.rfind(')').expect("a stat line") + 2..].split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

/// CPU time of a process's threads so far, in ms, to the nanosecond: for work that is shorter than a tick of the kernel.
pub fn cpu_ms(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    let run = |thread: std::fs::DirEntry| {
        // One that ends in between has done nothing.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|run| run.parse::<f64>().ok()).unwrap_or_default()
    };
    threads.map(|thread| run(thread.expect("a thread"))).sum::<f64>() / 1e6
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The benchmark's own program again, as `--bare PATH PORT`: a handler that does no more than what is compared needs. It ends
/// when this is dropped.
#[derive(Debug)]
pub struct Bare {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Bare {
    /// Starts it with what it serves, and waits until it listens.
    pub fn start(path: &Path) -> Self {
        let port = free_port();
        let program = std::env::current_exe().expect("this program");
        let child =
            Command::new(program).arg("--bare").arg(path).arg(port.to_string()).spawn().expect("starts");
        let mut bare = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) };
        while TcpStream::connect(bare.address).is_err() {
            assert!(bare.child.try_wait().expect("waits").is_none(), "the bare handler stopped");
            std::thread::yield_now();
        }
        bare
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
