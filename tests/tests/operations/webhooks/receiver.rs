//! A receiver of webhooks for tests. It gives the configured responses and records each message.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::server::eventually;
use serde_json::Value;

/// A received message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Status of the receiver's response.
    pub(crate) status: u16,
}

impl Message {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        &self.headers[name]
    }

    /// Returns `true` if the signature is valid for this secret. Computes the HMAC with another
    /// library than the server.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let signed = [self.header("webhook-id"), self.header("webhook-timestamp"), ""].join(".");
        let signed = [signed.as_bytes(), &self.body].concat();
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &key);
        let signature = self.header("webhook-signature").strip_prefix("v1,").unwrap();
        aws_lc_rs::hmac::verify(&key, &signed, &STANDARD.decode(signature).unwrap()).is_ok()
    }
}

/// Returns the response to the n-th message with this body: status, further header lines, body, and
/// delay.
pub(crate) type Answers = dyn Fn(usize, &Value) -> (u16, String, Vec<u8>, Duration) + Send + Sync;

pub(crate) struct Receiver {
    port: u16,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Receiver {
    /// Accepts every message.
    pub(crate) fn start() -> Receiver {
        Receiver::answering(|_, _| ok())
    }

    pub(crate) fn answering(
        answers: impl Fn(usize, &Value) -> (u16, String, Vec<u8>, Duration) + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Receiver::on(listener, Arc::new(answers))
    }

    pub(crate) fn on(listener: TcpListener, answers: Arc<Answers>) -> Receiver {
        let port = listener.local_addr().unwrap().port();
        let messages = Arc::<Mutex<Vec<Message>>>::default();
        let stored = Arc::clone(&messages);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (stored, answers) = (Arc::clone(&stored), Arc::clone(&answers));
                std::thread::spawn(move || {
                    let _ = converse(&stream, &stored, &*answers);
                });
            }
        });
        Receiver { port, messages }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Message> {
        self.messages().into_iter().filter(|message| message.kind() == kind).collect()
    }

    /// Waits for the first message of this kind whose subject contains `what`.
    #[track_caller]
    pub(crate) fn expect(&self, kind: &str, what: &str) -> Message {
        eventually(&format!("{kind} {what}"), || {
            self.of_kind(kind)
                .into_iter()
                .find(|message| message.json()["subject"].as_str().unwrap().contains(what))
        })
    }
}

pub(crate) fn ok() -> (u16, String, Vec<u8>, Duration) {
    answer(200)
}

pub(crate) fn answer(status: u16) -> (u16, String, Vec<u8>, Duration) {
    (status, String::new(), b"done".to_vec(), Duration::ZERO)
}

fn converse(stream: &TcpStream, stored: &Mutex<Vec<Message>>, answers: &Answers) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        assert!(line.starts_with("POST "), "{line}");
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body)?;
        let number = stored.lock().unwrap().len();
        let (status, more, text, after) = answers(number, &serde_json::from_slice(&body).unwrap());
        stored.lock().unwrap().push(Message { headers, body, status });
        std::thread::sleep(after);
        let head = format!("HTTP/1.1 {status} x\r\n{more}Content-Length: {}\r\n\r\n", text.len());
        (&mut &*stream).write_all(&[head.as_bytes(), &text].concat())?;
    }
}
