//! A minimal balancer: it passes connections in turn to the servers whose `readyz` answers 200. It
//! polls `readyz` every 100 ms. It sends no request a second time.

use packhouse_tests::{Connection, Request};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Interval between two readiness checks of a server.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for a server's readiness answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The balancer's view of a server.
#[derive(Debug)]
struct Backend {
    packages: SocketAddr,
    api: SocketAddr,
    ready: AtomicBool,
}

#[derive(Debug)]
struct State {
    backends: Vec<Backend>,
    next: AtomicUsize,
    retries: AtomicBool,
}

/// A running balancer; it ends with the process.
#[derive(Clone, Debug)]
pub struct Balancer {
    packages: SocketAddr,
    api: SocketAddr,
    state: Arc<State>,
}

impl Balancer {
    /// Starts a balancer for servers. Each pair is the address of a server's packages and of its
    /// API.
    pub fn start(servers: &[(SocketAddr, SocketAddr)]) -> Self {
        let backend = |&(packages, api): &_| Backend { packages, api, ready: AtomicBool::new(false) };
        let state = Arc::new(State {
            backends: servers.iter().map(backend).collect(),
            next: AtomicUsize::new(0),
            retries: AtomicBool::new(false),
        });
        for number in 0..servers.len() {
            let state = Arc::clone(&state);
            std::thread::spawn(move || state.watch(number));
        }
        let [packages, api] = [true, false].map(|packages| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let address = listener.local_addr().expect("its address");
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    let state = Arc::clone(&state);
                    std::thread::spawn(move || state.serve(client, packages));
                }
            });
            address
        });
        Self { packages, api, state }
    }

    /// The address for package clients.
    pub fn packages(&self) -> SocketAddr {
        self.packages
    }

    /// The address for API clients.
    pub fn api(&self) -> SocketAddr {
        self.api
    }

    /// Sets whether the balancer tries another server when one does not accept the connection. A
    /// second try is safe, because the balancer has not yet sent a byte of the request.
    pub fn retry(&self, whether: bool) {
        self.state.retries.store(whether, Ordering::SeqCst);
    }
}

impl State {
    fn watch(&self, number: usize) {
        let backend = &self.backends[number];
        loop {
            backend.ready.store(ready(backend.packages), Ordering::SeqCst);
            std::thread::sleep(INTERVAL);
        }
    }

    /// Connects a client to a ready server; closes the client's connection if no server is ready.
    fn serve(&self, client: TcpStream, packages: bool) {
        let tries = if self.retries.load(Ordering::SeqCst) { self.backends.len() } else { 1 };
        let from = self.next.fetch_add(1, Ordering::Relaxed);
        let all = (0..self.backends.len()).map(|step| &self.backends[(from + step) % self.backends.len()]);
        let ready = all.filter(|backend| backend.ready.load(Ordering::SeqCst)).take(tries);
        let server = ready
            .filter_map(|backend| {
                let address = if packages { backend.packages } else { backend.api };
                TcpStream::connect_timeout(&address, PATIENCE).ok()
            })
            .next();
        if let Some(server) = server {
            join(client, server);
        }
    }
}

fn ready(server: SocketAddr) -> bool {
    let ask = || -> std::io::Result<u16> {
        let mut connection = Connection::open_within(server, PATIENCE)?;
        connection.send(&Request::new("GET", "/readyz").head("balancer"))?;
        Ok(connection.read_response(false)?.status)
    };
    ask().is_ok_and(|status| status == 200)
}

/// Passes bytes both ways until both sides have ended.
fn join(client: TcpStream, server: TcpStream) {
    let (Ok(from), Ok(to)) = (server.try_clone(), client.try_clone()) else { return };
    let answers = std::thread::spawn(move || pass(from, to));
    pass(client, server);
    let _ = answers.join();
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    let whole = loop {
        match from.read(&mut buffer) {
            Ok(0) => break true,
            Ok(length) if to.write_all(&buffer[..length]).is_ok() => {}
            _ => break false,
        }
    };
    // If one connection broke, break its counterpart too. A clean end would look like a complete
    // answer.
    let _ = to.shutdown(if whole { Shutdown::Write } else { Shutdown::Both });
    if !whole {
        let _ = from.shutdown(Shutdown::Both);
    }
}
