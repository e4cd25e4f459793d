//! A TCP proxy that misbehaves on demand: what stands between a server and its S3, and hangs, errs or cuts answers short.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What it does with connections, those that are open included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Takes what comes and says nothing.
    Hang,
    /// Answers each request with 500.
    Err,
    /// Passes this many bytes of answers on each connection, then says nothing more.
    HangAfter(u64),
    /// Passes this many bytes of answers on each connection, then closes it.
    CutAfter(u64),
}

/// A running one; its listener ends with the process.
#[derive(Clone, Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    /// With how often it was set: bytes are counted anew each time.
    mode: Arc<Mutex<(Mode, u64)>>,
    requests: Arc<AtomicU64>,
}

impl FaultProxy {
    /// Starts one before this address.
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let proxy = Self { address, mode: Arc::new(Mutex::new((Mode::Pass, 0))), requests: Arc::default() };
        let of_thread = proxy.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let proxy = of_thread.clone();
                std::thread::spawn(move || proxy.serve(client, upstream));
            }
        });
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does so from now on.
    pub fn set(&self, mode: Mode) {
        let mut now = self.mode.lock().expect("the mode");
        *now = (mode, now.1 + 1);
    }

    /// How many times somebody sent something since the start: about as many as there were requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn mode(&self) -> (Mode, u64) {
        *self.mode.lock().expect("the mode")
    }

    fn serve(&self, mut client: TcpStream, upstream: SocketAddr) {
        let mut server = None;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            self.requests.fetch_add(1, Ordering::Relaxed);
            match self.mode().0 {
                Mode::Hang => continue,
                Mode::Err => {
                    let _ = client.write_all(
                        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    );
                    break;
                }
                Mode::Pass | Mode::HangAfter(_) | Mode::CutAfter(_) => {}
            }
            let server = match &mut server {
                Some(server) => server,
                None => {
                    let Ok(connected) = TcpStream::connect(upstream) else { break };
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

    /// Passes answers on, as far as the mode lets them.
    fn answer(&self, mut from: TcpStream, mut to: TcpStream) {
        let (mut buffer, mut passed, mut since) = (vec![0; 16 * 1024], 0, 0);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
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
                    // Held back until the mode is another.
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
