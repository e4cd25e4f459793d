//! A proxy to PostgreSQL that can drop notifications (NOTIFY) and passes on everything else. Tests
//! use it to simulate lost notifications.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `NotificationResponse` of the protocol (PostgreSQL, 55.7 Message Formats).
const NOTICE: u8 = b'A';

/// A proxy to PostgreSQL; it ends with the test process. Use it with `sslmode=disable`: the proxy
/// parses the messages and cannot read TLS.
#[derive(Clone, Debug)]
pub struct DeafWire {
    address: SocketAddr,
    deaf: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
}

impl DeafWire {
    /// A proxy to this port of 127.0.0.1.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its number");
        let wire = Self { address, deaf: Arc::default(), dropped: Arc::default() };
        let of_thread = wire.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                let (mut from, mut to) =
                    (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                let wire = of_thread.clone();
                std::thread::spawn(move || {
                    let _ = wire.answer(&server, &client);
                    let _ = client.shutdown(Shutdown::Both);
                    let _ = server.shutdown(Shutdown::Both);
                });
            }
        });
        wire
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts or stops dropping notifications.
    pub fn set(&self, deaf: bool) {
        self.deaf.store(deaf, Ordering::SeqCst);
    }

    /// Number of dropped notifications.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::SeqCst)
    }

    fn answer(&self, mut from: &TcpStream, mut to: &TcpStream) -> std::io::Result<()> {
        let (mut bytes, mut held) = (vec![0; 64 * 1024], Vec::new());
        loop {
            let count = from.read(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            held.extend_from_slice(&bytes[..count]);
            let mut passed = Vec::new();
            // A message is a letter, a 32-bit length, and the content. The length includes its own
            // four bytes but not the letter.
            while held.len() >= 5 {
                let length = u32::from_be_bytes([held[1], held[2], held[3], held[4]]) as usize + 1;
                if held.len() < length {
                    break;
                }
                let message: Vec<u8> = held.drain(..length).collect();
                if message[0] == NOTICE && self.deaf.load(Ordering::SeqCst) {
                    self.dropped.fetch_add(1, Ordering::SeqCst);
                } else {
                    passed.extend(message);
                }
            }
            to.write_all(&passed)?;
        }
    }
}
