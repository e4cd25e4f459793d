//! A collector of OpenTelemetry: it receives spans by OTLP over HTTP, in protobuf, and records
//! them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The fields of a span that tests need. Ids are in lower-case hex; an empty id means that the span
/// has none.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The trace that it belongs to.
    pub trace: String,
    /// Its own id.
    pub id: String,
    /// The id of its parent.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Begin and end, in ns since 1970.
    pub time: (u64, u64),
    /// Its attributes; numbers as text.
    pub attributes: BTreeMap<String, String>,
}

/// A running collector. It ends with the process.
#[derive(Clone, Debug)]
pub struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Default for Collector {
    fn default() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let collector = Self { address: listener.local_addr().expect("its address"), bodies: Arc::default() };
        let bodies = Arc::clone(&collector.bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bodies = Arc::clone(&bodies);
                // A client may close its connection at any time.
                std::thread::spawn(move || serve(&stream, &bodies));
            }
        });
        collector
    }
}

impl Collector {
    /// The value for `tracing.otlp_endpoint`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All received bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bodies.lock().unwrap().concat()
    }

    /// All received spans.
    pub fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let spans = bodies.iter().flat_map(|body| {
            // ExportTraceServiceRequest → ResourceSpans → ScopeSpans → Span.
            fields(body, 1).flat_map(|of_resource| {
                fields(of_resource, 2).flat_map(|of_scope| fields(of_scope, 2)).map(span).collect::<Vec<_>>()
            })
        });
        spans.collect()
    }
}

fn serve(stream: &TcpStream, bodies: &Mutex<Vec<Vec<u8>>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut first) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if first.is_empty() {
                first = line;
            }
        }
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        bodies.lock().unwrap().push(body);
        (&*stream).write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
        )?;
    }
}

/// A value of a protobuf message.
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message: number and value (https://protobuf.dev/programming-guides/encoding/).
fn message(mut bytes: &[u8]) -> Vec<(u64, FieldValue<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => FieldValue::Number(varint(&mut bytes)),
            1 => FieldValue::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().expect("8 bytes"))),
            2 => {
                let length = varint(&mut bytes);
                FieldValue::Bytes(take(&mut bytes, length as usize))
            }
            5 => FieldValue::Number(
                u32::from_le_bytes(take(&mut bytes, 4).try_into().expect("4 bytes")).into(),
            ),
            other => panic!("protobuf has no wire type {other}"),
        };
        found.push((tag >> 3, value));
    }
    found
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The values of the field with this number that are messages, texts or bytes.
fn fields(bytes: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    message(bytes).into_iter().filter_map(move |(found, value)| match value {
        FieldValue::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

fn span(bytes: &[u8]) -> Span {
    let mut span = Span::default();
    for (number, value) in message(bytes) {
        match (number, value) {
            (1, FieldValue::Bytes(id)) => span.trace = hex::encode(id),
            (2, FieldValue::Bytes(id)) => span.id = hex::encode(id),
            (4, FieldValue::Bytes(id)) => span.parent = hex::encode(id),
            (5, FieldValue::Bytes(name)) => span.name = text(name),
            (7, FieldValue::Number(time)) => span.time.0 = time,
            (8, FieldValue::Number(time)) => span.time.1 = time,
            (9, FieldValue::Bytes(attribute)) => {
                let key = fields(attribute, 1).map(text).collect();
                let value = fields(attribute, 2).flat_map(message).map(|(_, value)| match value {
                    FieldValue::Bytes(bytes) => text(bytes),
                    FieldValue::Number(number) => number.to_string(),
                });
                span.attributes.insert(key, value.collect());
            }
            _ => {}
        }
    }
    span
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
