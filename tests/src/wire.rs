//! A TCP proxy that can fall silent. Open connections then stay open but pass nothing in either
//! direction, as when a firewall drops its state. Connections opened later work.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The proxy; it ends with the test process.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    state: Arc<WireState>,
}

#[derive(Debug, Default)]
struct WireState {
    /// Number of calls to `freeze`. Connections that were opened before the last call are silent.
    age: AtomicU64,
    opened: AtomicU64,
    /// Threads of silent connections wait here for ever, so that the connections stay open.
    nobody: Mutex<()>,
    never: Condvar,
}

impl Wire {
    /// A proxy to this port of 127.0.0.1.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its number");
        let state = Arc::<WireState>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for inward in listener.incoming().flatten() {
                let Ok(outward) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                shared.opened.fetch_add(1, Ordering::Relaxed);
                let age = shared.age.load(Ordering::SeqCst);
                for (from, to) in [(&inward, &outward), (&outward, &inward)] {
                    let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                    let state = Arc::clone(&shared);
                    std::thread::spawn(move || pass(from, to, age, &state));
                }
            }
        });
        Self { address, state }
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Silences all open connections.
    pub fn freeze(&self) {
        self.state.age.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of connections opened so far.
    pub fn opened(&self) -> u64 {
        self.state.opened.load(Ordering::Relaxed)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, age: u64, state: &WireState) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes);
        if state.age.load(Ordering::SeqCst) != age {
            // A silent connection does not even pass on the end of the stream.
            let mut nobody = state.nobody.lock().expect("no thread panics with this lock");
            loop {
                nobody = state.never.wait(nobody).expect("no thread panics with this lock");
            }
        }
        match read {
            Ok(count) if count > 0 && to.write_all(&bytes[..count]).is_ok() => {}
            _ => {
                let _ = to.shutdown(std::net::Shutdown::Both);
                let _ = from.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }
}
