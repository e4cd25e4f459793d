//! Slow clients: they do not delay other clients, and the server gives up on them.

use packhouse_tests::{Connection, MavenRepository, Request, Server};
use std::time::{Duration, Instant};

#[test]
fn five_hundred_slow_clients_do_not_delay_another() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "slow");
    repository.put("org/example/a/1.0/a-1.0.jar", "here").expect(201);

    let head = Request::new("PUT", &repository.path("org/example/b/1.0/b-1.0.jar"))
        .header("Content-Length", "1000000");
    let body_head = repository.client.head_bytes(head);
    let mut slow = Vec::new();
    for number in 0..500 {
        let mut connection = Connection::open(server.packages()).unwrap();
        if number % 2 == 0 {
            connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
        } else {
            connection.send(&body_head).unwrap();
            connection.send(b"a few bytes").unwrap();
        }
        slow.push(connection);
    }

    for _ in 0..20 {
        let start = Instant::now();
        repository.get("org/example/a/1.0/a-1.0.jar").expect(200);
        assert!(start.elapsed() < Duration::from_secs(1), "a read took {:?}", start.elapsed());
    }
    let start = Instant::now();
    repository.put("org/example/c/1.0/c-1.0.jar", "written meanwhile").expect(201);
    assert!(start.elapsed() < Duration::from_secs(1), "a write took {:?}", start.elapsed());
    drop(slow);
}

#[test]
fn a_body_that_stalls_is_answered_408_on_both_hosts() {
    let server = Server::with().env("PACKHOUSE_LIMITS_BODY_IDLE_MS", "300").start();
    let repository = MavenRepository::create(&server, "stalled");
    let put =
        Request::new("PUT", &repository.path("org/example/a/1.0/a-1.0.jar")).header("Content-Length", "1000");
    let post = Request::new("POST", "/v1/sessions")
        .header("Content-Type", "application/json")
        .header("Content-Length", "1000");

    for (address, head) in
        [(server.packages(), repository.client.head_bytes(put)), (server.api(), post.head("localhost"))]
    {
        let mut connection = Connection::open(address).unwrap();
        connection.send(&head).unwrap();
        connection.send(b"{\"email\":").unwrap();
        let answer = connection.read_response(false).unwrap().expect(408);
        assert_eq!(answer.field("error"), "request_timeout");
        assert!(!answer.field("request_id").is_empty());
        assert!(connection.closed(), "a connection with a body half sent cannot be used again");
    }
    assert_eq!(repository.get("org/example/a/1.0/a-1.0.jar").status, 404);
}

#[test]
fn a_head_that_never_ends_times_out() {
    let server = Server::with().env("PACKHOUSE_LIMITS_HEADER_MS", "300").start();
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    assert!(connection.closed());
    let mut silent = Connection::open(server.packages()).unwrap();
    assert!(silent.closed(), "a connection without a byte is given up as well");
}
