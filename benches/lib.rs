//! Shared parts of the benchmarks: a load of keep-alive GETs, and the CPU time of a process.
//!
//! Only ratios within one run are results, because absolute figures depend on other load of the
//! machine.
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

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadResult {
    /// Responses per second of all connections together.
    pub rate: f64,
    /// CPU time of the server for a response, in µs.
    pub cpu_us: f64,
}

/// Sends the same GET over `connections` keep-alive connections for about `time`. Each connection
/// has its own thread. Panics if a response differs in length from the first one, or has a status
/// other than 200.
pub fn load(address: SocketAddr, pid: u32, request: &str, connections: usize, time: Duration) -> LoadResult {
    let length = response_length(address, request);
    let (before, start) = (cpu_seconds(pid), Instant::now());
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| repeat(address, request, length, start + time)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a connection failed")).collect()
    });
    let responses = counts.iter().sum::<u64>() as f64;
    LoadResult {
        rate: responses / start.elapsed().as_secs_f64(),
        cpu_us: (cpu_seconds(pid) - before) / responses * 1e6,
    }
}

fn repeat(address: SocketAddr, request: &str, length: usize, until: Instant) -> u64 {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.set_nodelay(true).expect("nodelay");
    let mut response = vec![0; length];
    let mut count = 0;
    while Instant::now() < until {
        stream.write_all(request.as_bytes()).expect("send");
        stream.read_exact(&mut response).expect("a response of the same length");
        assert!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
        count += 1;
    }
    count
}

/// The length of head and body of one response, in bytes.
fn response_length(address: SocketAddr, request: &str) -> usize {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).expect("send");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("read");
    let head = String::from_utf8_lossy(&response).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{}", head.lines().next().unwrap_or_default());
    // This header line is subtracted, because responses on keep-alive connections do not have it.
    response.len() - if head.contains("connection: close\r\n") { "connection: close\r\n".len() } else { 0 }
}

/// CPU time of a process so far, in seconds, from the kernel's ticks (100 per second).
pub fn cpu_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let fields: Vec<&str> = text[text.rfind(')').expect("a stat line") + 2..].split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

/// CPU time of a process's threads so far, in ms, with a resolution of a nanosecond. It can measure
/// work that is shorter than a tick of the kernel.
pub fn cpu_ms(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    let run = |thread: std::fs::DirEntry| {
        // A thread that has ended in the meantime adds no time.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|run| run.parse::<f64>().ok()).unwrap_or_default()
    };
    threads.map(|thread| run(thread.expect("a thread"))).sum::<f64>() / 1e6
}

/// The median of these values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A second process of the benchmark, started with `--bare PATH PORT`. Its handler does only what
/// the comparison needs. Dropping the value stops the process.
#[derive(Debug)]
pub struct BareServer {
    child: Child,
    /// Address on which the process listens.
    pub address: SocketAddr,
}

impl BareServer {
    /// Starts the process, which serves `path`, and waits until it listens.
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

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
