//! The proxy of a network through which a server must go out: it remembers what it was asked for and passes it on.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running one. It ends with the process.
#[derive(Clone, Debug)]
pub struct Egress {
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Egress {
    /// Starts one that leads every request to `to`, whatever name it is for: that is its own to look up.
    pub fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let egress = Self { address: listener.local_addr().expect("its address"), lines: Arc::default() };
        let lines = Arc::clone(&egress.lines);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = Arc::clone(&lines);
                // Whoever hangs up has its reasons.
                std::thread::spawn(move || serve(&stream, to, &lines));
            }
        });
        egress
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The request lines so far.
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
        // `GET http://host:port/path HTTP/1.1` as the server behind it wants to see it, and one request a connection.
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
