//! Bodies of API calls: from unauthenticated clients, and from an authenticated client that sends
//! more bodies than the server accepts at once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use packhouse_tests::{Api, Client, Connection, Request, Response, Server};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::MIB;
use super::h2c::{Http2, block_on, within};

/// A body of the maximum size, without its last byte, which never arrives.
fn most_of_a_body() -> Vec<u8> {
    vec![b' '; MIB as usize - 1]
}

fn head(path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut request = Request::new("POST", path).header("Content-Type", "application/json");
    for (name, value) in fields {
        request = request.header(name, value);
    }
    request.header("Connection", "keep-alive").head("localhost")
}

#[test]
fn unauthenticated_bodies_take_no_memory() {
    const CLIENTS: usize = 400;
    let server = Server::start();
    let address = server.api();
    // The first request takes memory once, so the test measures only after it.
    Client::new(address).get("/v1/openapi.json").expect(200);
    let before = server.rss();
    let (statuses, most) = server.watched(|| {
        block_on(async {
            let mut open = Vec::new();
            let body = most_of_a_body();
            for number in 0..CLIENTS {
                let mut stream = TcpStream::connect(address).await.unwrap();
                // Half of the requests state a length, half do not. A quarter are sign-ins, for
                // which the server reads the body without a session.
                let path = if number % 4 == 0 { "/v1/sessions" } else { "/v1/tokens" };
                let chunk = format!("{:x}\r\n", body.len());
                let length = MIB.to_string();
                let head = match number % 2 {
                    0 => head(path, &[("Content-Length", length.as_str())]),
                    _ => [head(path, &[("Transfer-Encoding", "chunked")]), chunk.into_bytes()].concat(),
                };
                // The server may close the connection before the client has sent everything.
                let _ = stream.write_all(&head).await;
                let _ = tokio::time::timeout(Duration::from_millis(200), stream.write_all(&body)).await;
                open.push(stream);
            }
            let mut statuses = Vec::new();
            for stream in &mut open {
                let mut status = [0; 12];
                if within("an answer", stream.read_exact(&mut status)).await.is_ok() {
                    statuses.push(String::from_utf8_lossy(&status).into_owned());
                }
            }
            statuses
        })
    });
    let grown = most.saturating_sub(before);
    println!("{CLIENTS} unauthenticated bodies of 1 MiB: {} KiB more", grown / 1024);
    assert!(grown < 48 * MIB, "{} MiB more for {CLIENTS} bodies of a MiB", grown / MIB);
    assert!(statuses.len() > CLIENTS / 2, "only {} were answered", statuses.len());
    for status in statuses {
        assert!(status.ends_with("401") || status.ends_with("413"), "{status}");
    }
}

#[test]
fn unauthenticated_bodies_take_no_memory_on_many_streams() {
    const CONNECTIONS: usize = 4;
    const STREAMS: usize = 120;
    let server = Server::start();
    Client::new(server.api()).get("/v1/openapi.json").expect(200);
    let before = server.rss();
    let (statuses, most) = server.watched(|| {
        block_on(async {
            let mut open = Vec::new();
            for _ in 0..CONNECTIONS {
                let mut connection = Http2::open(server.api(), 65_535).await;
                let mut answers = Vec::new();
                for _ in 0..STREAMS {
                    let fields = [("content-type", "application/json")];
                    let (answer, mut body) = connection.begin("POST", "/v1/tokens", &fields, true).await;
                    let _ = body.send_data(Bytes::from(most_of_a_body()), false);
                    answers.push((answer, body));
                }
                open.push((connection, answers));
            }
            let mut statuses = Vec::new();
            for (_, answers) in &mut open {
                for (answer, _) in answers {
                    statuses.push(within("an answer", answer).await.unwrap().status());
                }
            }
            statuses
        })
    });
    let grown = most.saturating_sub(before);
    println!("{} streams with a MiB each: {} KiB more", CONNECTIONS * STREAMS, grown / 1024);
    assert!(grown < 48 * MIB, "{} MiB more for {} streams", grown / MIB, CONNECTIONS * STREAMS);
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
}

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

#[test]
fn an_unauthenticated_body_is_judged_by_its_head_alone() {
    let server = Server::start();
    let client = Client::new(server.api());
    let announced = |path: &str, kind: &str, length: u64| {
        let head = Request::new("POST", path)
            .header("Content-Type", kind)
            .header("Content-Length", &length.to_string())
            .head("localhost");
        let mut connection = Connection::open(server.api()).unwrap();
        connection.send(&head).unwrap();
        let answer = connection.read_response(false).unwrap();
        assert!(connection.closed(), "the rest of the body would block the next request");
        answer
    };
    // The client sends nothing of the body. A server that waited for the body would not answer.
    is(&announced("/v1/tokens", "application/json", 2 * MIB), 413, "request_body_too_large");
    is(&announced("/v1/tokens", "text/plain", MIB), 415, "unsupported_media_type");
    is(&announced("/v1/tokens", "application/json", MIB), 401, "not_signed_in");
    is(&announced("/v1/sessions", "application/json", MIB), 413, "request_body_too_large");
    is(&announced("/v1/password-resets/x", "application/json", MIB), 413, "request_body_too_large");
    is(&announced("/v1/invitations/x/accept", "application/json", MIB), 413, "request_body_too_large");

    let post = |client: &Client, body: &str| {
        let request = Request::new("POST", "/v1/tokens").header("Content-Type", "application/json");
        client.send(request.body(body))
    };
    is(&post(&client, "{"), 401, "not_signed_in");
    let api = Api::sign_in(&server);
    is(&post(api.client(), "{"), 400, "malformed_json");
    // The server reads a small body that it does not need and drops it; the connection stays open.
    let request = head("/v1/tokens", &[("Content-Length", "2")]);
    let mut connection = Connection::open(server.api()).unwrap();
    for _ in 0..2 {
        connection.send(&[request.as_slice(), b"{}"].concat()).unwrap();
        is(&connection.read_response(false).unwrap(), 401, "not_signed_in");
    }
}

/// Opens calls with a valid session whose bodies lack their last byte, until the server refuses
/// one. Returns the open connections and the refusal.
fn fill(server: &Server, api: &Api) -> (Vec<Connection>, Response) {
    let body = most_of_a_body();
    let bearer = format!("Bearer {}", api.session);
    let length = MIB.to_string();
    let head = head("/v1/tokens", &[("Content-Length", length.as_str()), ("Authorization", bearer.as_str())]);
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut connection = Connection::open(server.api()).unwrap();
        connection.send(&head).unwrap();
        // The server may refuse the last call while the client still sends the body.
        let _ = connection.send(&body);
        if let Some(answer) = answered(&mut connection) {
            return (open, answer);
        }
        open.push(connection);
    }
    panic!("none of {} was refused", open.len());
}

/// The answer if it came before the whole body; `None` if the server waits for the rest.
fn answered(connection: &mut Connection) -> Option<Response> {
    connection.read_response_within(Duration::from_secs(2))
}

#[test]
fn bodies_are_bounded_in_total_and_by_address() {
    let server = Server::with().env("PACKHOUSE_LIMITS_API_BODIES_BYTES_PER_ADDRESS", "2 MiB").start();
    let api = Api::sign_in(&server);
    let (open, refused) = fill(&server, &api);
    assert_eq!(open.len(), 2);
    is(&refused, 429, "too_many_attempts");
    assert!(refused.header("retry-after").is_some());
    drop(open);

    let server = Server::with().env("PACKHOUSE_LIMITS_API_BODIES_BYTES", "3 MiB").start();
    let api = Api::sign_in(&server);
    let (mut open, refused) = fill(&server, &api);
    assert_eq!(open.len(), 3);
    is(&refused, 503, "server_busy");
    assert_eq!(refused.header("retry-after"), Some("5"));
    // The server answers the accepted calls after their last byte, and frees their memory.
    for connection in &mut open {
        connection.send(b" ").unwrap();
        is(&connection.read_response(false).unwrap(), 400, "malformed_json");
    }
    api.post("/v1/tokens", &json!({})).expect(400);
}

#[test]
fn a_body_that_trickles_times_out() {
    let server = Server::with()
        .env("PACKHOUSE_LIMITS_BODY_IDLE_MS", "1000")
        .env("PACKHOUSE_LIMITS_API_BODY_RATE", "1000")
        .start();
    let start = Instant::now();
    let received = block_on(async {
        let mut stream = TcpStream::connect(server.api()).await.unwrap();
        stream.write_all(&head("/v1/sessions", &[("Content-Length", "10000")])).await.unwrap();
        let mut received = Vec::new();
        loop {
            // The client sends a byte from time to time.
            let pause =
                tokio::time::timeout(Duration::from_millis(100), stream.read_buf(&mut received)).await;
            if pause.is_ok() || start.elapsed() > Duration::from_secs(20) {
                return String::from_utf8_lossy(&received).into_owned();
            }
            stream.write_all(b" ").await.unwrap();
        }
    });
    assert!(received.starts_with("HTTP/1.1 408"), "{received:?} after {:?}", start.elapsed());
}
