//! An outgoing HTTP proxy, as company networks have it. It records requests and passes them on.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running proxy. It ends with the process.
#[derive(Clone, Debug)]
pub struct Egress {
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Egress {
    /// Starts a proxy that sends every request to `to`, whatever host the request names. Clients
    /// therefore need no name server.
    pub fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let egress = Self { address: listener.local_addr().expect("its address"), lines: Arc::default() };
        let lines = Arc::clone(&egress.lines);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = Arc::clone(&lines);
                // A client may close its connection at any time.
                std::thread::spawn(move || serve(&stream, to, &lines));
            }
        });
        egress
    }

    /// The proxy's URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The request lines that the proxy received so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

fn serve(client: &TcpStream, to: SocketAddr, lines: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let first = head.first().cloned().unwrap_or_default();
    lines.lock().unwrap().push(first.clone());
    let mut far = TcpStream::connect(to)?;
    if first.starts_with("CONNECT ") {
        (&*client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        // Turns `GET http://host:port/path HTTP/1.1` into `GET /path HTTP/1.1`, which the server
        // expects. `Connection: close` limits the connection to one request.
        let mut words = first.split(' ');
        let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = url.splitn(4, '/').nth(3).unwrap_or_default();
        let fields = head.iter().skip(1).filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        let fields: String = fields.map(|line| format!("{line}\r\n")).collect();
        far.write_all(format!("{method} /{path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes())?;
    }
    far.write_all(reader.buffer())?;
    let (mut up_from, mut up_to) = (client.try_clone()?, far.try_clone()?);
    std::thread::spawn(move || pass(&mut up_from, &mut up_to));
    pass(&mut far, &mut client.try_clone()?);
    Ok(())
}

fn pass(from: &mut (impl Read + ?Sized), to: &mut TcpStream) {
    let _ = std::io::copy(from, to);
    let _ = to.shutdown(Shutdown::Write);
}
