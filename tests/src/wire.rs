//! A TCP way to somewhere that can fall silent: what is open then stays open, and nothing passes any more in either direction,
//! as when a firewall forgets its connections. What is opened afterwards works.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The way; it ends with the test process.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections of an earlier age are silent.
    age: AtomicU64,
    opened: AtomicU64,
    /// Who is silent waits here for ever, so that its connection stays open.
    nobody: Mutex<()>,
    never: Condvar,
}

impl Wire {
    /// A way to this port of 127.0.0.1.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its number");
        let state = Arc::<State>::default();
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

    /// Where it begins.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What is open falls silent.
    pub fn freeze(&self) {
        self.state.age.fetch_add(1, Ordering::SeqCst);
    }

    /// How many connections were ever opened.
    pub fn opened(&self) -> u64 {
        self.state.opened.load(Ordering::Relaxed)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, age: u64, state: &State) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes);
        if state.age.load(Ordering::SeqCst) != age {
            // Not even its end is passed on.
            let mut nobody = state.nobody.lock().expect("nobody panics with it");
            loop {
                nobody = state.never.wait(nobody).expect("nobody panics with it");
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
