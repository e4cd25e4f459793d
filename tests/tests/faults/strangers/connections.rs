//! Idle connections, and more connections than one address may have.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use packhouse_tests::server::eventually;
use packhouse_tests::{Connection, MavenRepository, Request, Server};
use tokio::net::TcpSocket;

use super::h2c::{Http2, block_on, take, within};

#[test]
fn an_http_2_connection_that_only_answers_ping_is_closed() {
    let server = Server::with().env("PACKHOUSE_LIMITS_IDLE_MS", "700").start();
    let repository = MavenRepository::create(&server, "idle");
    let head = Request::new("PUT", &repository.path("org/example/a/1.0/a-1.0.jar"));
    let head = head.header("Content-Length", "10");
    let mut busy = Connection::open(server.packages()).unwrap();
    busy.send(&repository.client.head_bytes(head)).unwrap();
    busy.send(b"01234").unwrap();
    block_on(async {
        for address in [server.packages(), server.api()] {
            let silent = Http2::open(address, 65_535).await;
            let mut used = Http2::open(address, 65_535).await;
            let answer = used.get("/livez", &[]).await;
            let _ = take(answer.into_body()).await;
            silent.closed().await;
            used.closed().await;
        }
    });
    // A connection with a request in progress is not idle.
    busy.send(b"56789").unwrap();
    busy.read_response(false).unwrap().expect(201);
}

#[test]
fn idle_connections_are_closed_when_connections_are_scarce() {
    const MOST: usize = 16;
    let server = Server::with()
        .env("PACKHOUSE_LIMITS_CONNECTIONS", &MOST.to_string())
        .env("PACKHOUSE_LIMITS_IDLE_MS", "600000")
        .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")
        .start();
    let start = Instant::now();
    block_on(async {
        let mut idle = Vec::new();
        for _ in 0..MOST {
            let mut connection = Http2::open(server.packages(), 65_535).await;
            let _ = take(connection.get("/", &[]).await.into_body()).await;
            idle.push(connection);
        }
        // Connections that only answer PING take all slots.
        let mut next = Http2::open(server.packages(), 65_535).await;
        let answer = next.get("/", &[]).await;
        assert_eq!(answer.status(), 200);
    });
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// Opens a connection to `target` from this loopback address.
async fn from(source: Ipv4Addr, target: SocketAddr) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((source, 0))).unwrap();
    within("a connection", socket.connect(target)).await.unwrap()
}

/// Sends a plain request on the connection; returns the answer, or `None` if the server closed the
/// connection.
async fn answered(stream: &mut tokio::net::TcpStream) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut first = [0; 12];
    let read = within("an answer or the end", stream.read_exact(&mut first)).await;
    read.ok().map(|_| String::from_utf8_lossy(&first).into_owned())
}

#[test]
fn one_address_has_no_more_connections_than_its_share() {
    const MOST: usize = 20;
    let server = Server::with().env("PACKHOUSE_LIMITS_CONNECTIONS_PER_ADDRESS", &MOST.to_string()).start();
    let crowd = Ipv4Addr::new(127, 0, 0, 2);
    block_on(async {
        let mut held = Vec::new();
        for _ in 0..MOST {
            let mut stream = from(crowd, server.packages()).await;
            assert!(answered(&mut stream).await.is_some_and(|line| line.ends_with("200")));
            held.push(stream);
        }
        for _ in 0..100 {
            let mut one_more = from(crowd, server.packages()).await;
            assert_eq!(answered(&mut one_more).await, None);
        }
        let mut other = from(Ipv4Addr::new(127, 0, 0, 3), server.packages()).await;
        assert!(answered(&mut other).await.is_some(), "another address has its own limit");
        let mut api = from(crowd, server.api()).await;
        assert!(answered(&mut api).await.is_some(), "the API listener has its own limit");
        held.pop();
    });
    eventually("a freed slot can be used again", || {
        let answer = block_on(async { answered(&mut from(crowd, server.packages()).await).await });
        answer.map(drop)
    });
}

#[test]
fn a_trusted_proxy_may_have_all_connections() {
    let server = Server::with()
        .env("PACKHOUSE_LIMITS_CONNECTIONS_PER_ADDRESS", "2")
        .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.2")
        .start();
    block_on(async {
        let mut held = Vec::new();
        for _ in 0..30 {
            let mut stream = from(Ipv4Addr::new(127, 0, 0, 2), server.packages()).await;
            assert!(answered(&mut stream).await.is_some());
            held.push(stream);
        }
    });
}
