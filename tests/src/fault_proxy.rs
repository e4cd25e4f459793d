//! A TCP proxy with faults on demand. It stands between a server and its S3 or database, and hangs,
//! fails or cuts answers short.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The proxy's behaviour for connections, including those already open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Accepts requests and answers nothing.
    Hang,
    /// Answers each request with 500.
    Err,
    /// Passes this many bytes of answers on each connection, then no more.
    HangAfter(u64),
    /// Passes this many bytes of answers on each connection, then closes it.
    CutAfter(u64),
    /// Holds all bytes back, in both directions, until the mode changes; then passes them on.
    Freeze,
    /// Passes everything on, each piece after this delay.
    Slow(Duration),
    /// Closes open connections and every new one.
    Away,
}

/// A running proxy; its listener ends with the process.
#[derive(Clone, Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    upstream: Arc<Mutex<SocketAddr>>,
    /// Open connections, so that they can be closed while they are idle.
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// The mode, and how often a test set it. Each change restarts the byte count of every
    /// connection.
    mode: Arc<Mutex<(Mode, u64)>>,
    requests: Arc<AtomicU64>,
}

impl FaultProxy {
    /// Starts a proxy to this address.
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let proxy = Self {
            address,
            upstream: Arc::new(Mutex::new(upstream)),
            open: Arc::default(),
            mode: Arc::new(Mutex::new((Mode::Pass, 0))),
            requests: Arc::default(),
        };
        let of_thread = proxy.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let proxy = of_thread.clone();
                std::thread::spawn(move || proxy.serve(client));
            }
        });
        proxy
    }

    /// Uses this upstream for new connections, and closes the open ones.
    pub fn lead_to(&self, upstream: SocketAddr) {
        *self.upstream.lock().expect("the upstream") = upstream;
        self.cut();
    }

    /// Closes open connections.
    pub fn cut(&self) {
        for stream in self.open.lock().expect("the open connections").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the mode.
    pub fn set(&self, mode: Mode) {
        let mut now = self.mode.lock().expect("the mode");
        *now = (mode, now.1 + 1);
        drop(now);
        if mode == Mode::Away {
            self.cut();
        }
    }

    /// Number of reads from clients since the start: roughly the number of requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn mode(&self) -> (Mode, u64) {
        *self.mode.lock().expect("the mode")
    }

    /// Adds an open connection to the list, and removes closed connections from it.
    fn remember(&self, stream: &TcpStream) {
        let mut open = self.open.lock().expect("the open connections");
        open.retain(|stream| stream.peer_addr().is_ok());
        open.extend(stream.try_clone());
    }

    /// Waits while the mode is `Freeze`, or for the delay of `Slow`.
    fn hold(&self) {
        while self.mode().0 == Mode::Freeze {
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Mode::Slow(time) = self.mode().0 {
            std::thread::sleep(time);
        }
    }

    fn serve(&self, mut client: TcpStream) {
        if self.mode().0 == Mode::Away {
            return;
        }
        self.remember(&client);
        let mut server = None;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.hold();
            match self.mode().0 {
                Mode::Hang => continue,
                Mode::Away => break,
                Mode::Err => {
                    let _ = client.write_all(
                        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    );
                    break;
                }
                _ => {}
            }
            let server = match &mut server {
                Some(server) => server,
                None => {
                    let upstream = *self.upstream.lock().expect("the upstream");
                    let Ok(connected) = TcpStream::connect(upstream) else { break };
                    self.remember(&connected);
                    let (Ok(from), Ok(to)) = (connected.try_clone(), client.try_clone()) else { break };
                    let proxy = self.clone();
                    std::thread::spawn(move || proxy.answer(from, to));
                    server.insert(connected)
                }
            };
            if server.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        if let Some(server) = server {
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Passes answers on, as far as the mode allows.
    fn answer(&self, mut from: TcpStream, mut to: TcpStream) {
        let (mut buffer, mut passed, mut since) = (vec![0; 16 * 1024], 0, 0);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            self.hold();
            loop {
                let (mode, set) = self.mode();
                if set != since {
                    (passed, since) = (0, set);
                }
                match mode {
                    Mode::CutAfter(most) if passed >= most => {
                        let _ = to.shutdown(Shutdown::Both);
                        let _ = from.shutdown(Shutdown::Both);
                        return;
                    }
                    // The bytes wait until the mode changes.
                    Mode::Hang => {}
                    Mode::HangAfter(most) if passed >= most => {}
                    _ => break,
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            passed += length as u64;
            if to.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}
