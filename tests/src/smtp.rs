//! A mail server that records every letter or refuses every recipient.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A received letter.
#[derive(Clone, Debug, Default)]
pub struct Letter {
    /// The envelope's sender and recipients.
    pub envelope: Vec<String>,
    /// Head and body, without the soft line breaks of quoted-printable.
    pub text: String,
}

/// The running server; it ends with the test's process.
#[derive(Clone, Debug)]
pub struct Sink {
    address: std::net::SocketAddr,
    letters: Arc<Mutex<Vec<Letter>>>,
    refuses: bool,
}

impl Sink {
    /// Starts a server that accepts every letter.
    pub fn start() -> Self {
        Self::run(false)
    }

    /// Starts a server that refuses every recipient.
    pub fn refusing() -> Self {
        Self::run(true)
    }

    fn run(refuses: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let sink = Self { address, letters: Arc::default(), refuses };
        let serving = sink.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sink = serving.clone();
                std::thread::spawn(move || sink.serve(stream));
            }
        });
        sink
    }

    /// The value for `PACKHOUSE_SMTP_URL`, with a user and this password.
    pub fn url(&self, password: &str) -> String {
        format!("smtp://mailer:{password}@{}", self.address)
    }

    /// The received letters.
    pub fn letters(&self) -> Vec<Letter> {
        self.letters.lock().expect("the letters").clone()
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut letter = Letter::default();
        reader.get_mut().write_all(b"220 sink\r\n").ok()?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let answer = match line.split([' ', ':', '\r']).next().unwrap_or_default() {
                "EHLO" => "250-sink\r\n250 AUTH PLAIN LOGIN\r\n",
                "AUTH" => "235 well\r\n",
                "MAIL" => {
                    letter.envelope.push(line.trim().to_owned());
                    "250 well\r\n"
                }
                "RCPT" if self.refuses => "550 nobody here\r\n",
                "RCPT" => {
                    letter.envelope.push(line.trim().to_owned());
                    "250 well\r\n"
                }
                "DATA" => {
                    reader.get_mut().write_all(b"354 go on\r\n").ok()?;
                    letter.text = data(&mut reader)?;
                    self.letters.lock().expect("the letters").push(std::mem::take(&mut letter));
                    "250 well\r\n"
                }
                "QUIT" => "221 bye\r\n",
                _ => "250 well\r\n",
            };
            reader.get_mut().write_all(answer.as_bytes()).ok()?;
        }
    }
}

fn data(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == ".\r\n" {
            return Some(text.replace("=\r\n", "").replace("\r\n", "\n"));
        }
        text += &line;
    }
}
