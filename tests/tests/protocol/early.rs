//! Early refusals. Wherever possible, the server refuses a request before it reads the body, and
//! instead of sending `100 Continue`.

use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Connection, MavenRepository, Request, Response, Server};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// Announces a body of this length with `Expect: 100-continue`. Sends the body after `100
/// Continue`. Returns the response.
fn expecting(client: &Client, target: &str, length: u64, body: &[u8]) -> Response {
    let head = Request::new("PUT", target)
        .header("Expect", "100-continue")
        .header("Content-Length", &length.to_string());
    let mut connection = Connection::open(client.address()).unwrap();
    connection.send(&client.head_bytes(head)).unwrap();
    let first = connection.read_head().unwrap();
    if first.status != 100 {
        return first;
    }
    connection.send(body).unwrap();
    let mut answer = connection.read_response(false).unwrap();
    answer.interim.push(100);
    answer
}

#[test]
fn continue_is_sent_only_to_requests_that_can_succeed() {
    let server = Server::with().env("PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTES", "1000").start();
    let repository = MavenRepository::create(&server, "early");
    let path = repository.path(FILE);
    let api = Api::sign_in(&server);
    let reader = api.create_token(&[&repository.id], &["read"], None);

    let answer = expecting(&repository.client, &path, 5, b"hello").expect(201);
    assert_eq!(answer.interim, [100]);

    let refused = |client: &Client, path: &str, length, status| {
        let answer = expecting(client, path, length, b"").expect(status);
        assert!(answer.interim.is_empty(), "{status} came after `100 Continue`");
    };
    let other = repository.path("org/example/a/2.0/a-2.0.jar");
    refused(&repository.client, &path, 5, 409);
    refused(&repository.client, &other, 1001, 413);
    refused(&server.anonymous(), &other, 5, 401);
    refused(&server.anonymous().basic(OWNER, "pkh_wrong"), &other, 5, 401);
    refused(&server.anonymous().basic(OWNER, &reader.secret), &other, 5, 403);
    refused(&repository.client, "/repositories/absent/org/example/a/1.0/a-1.0.jar", 5, 404);
    refused(&repository.client, "/nowhere", 5, 401);
    repository.get("org/example/a/2.0/a-2.0.jar").expect(404);
}

#[test]
fn a_file_over_the_limit_is_refused_by_declared_and_by_actual_length() {
    let server = Server::with().env("PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTES", "1000").start();
    let repository = MavenRepository::create(&server, "limit");
    repository.put(FILE, vec![0; 1000]).expect(201);

    let other = repository.path("org/example/a/2.0/a-2.0.jar");
    let declared = repository.client.put(&other, vec![0; 1001]).expect(413);
    assert_eq!(declared.field("error"), "file_too_large");

    let head = Request::new("PUT", &other).header("Transfer-Encoding", "chunked");
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(&repository.client.head_bytes(head)).unwrap();
    for _ in 0..3 {
        connection.send(b"190\r\n").unwrap();
        connection.send(&[b'x'; 400]).unwrap();
        connection.send(b"\r\n").unwrap();
    }
    // The client never sends the last chunk. The server responds without it.
    connection.read_response(false).unwrap().expect(413);
    repository.get("org/example/a/2.0/a-2.0.jar").expect(404);
}

#[test]
fn a_chunked_body_is_stored_without_its_chunk_framing() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "chunked");
    let request = Request::new("PUT", &repository.path(FILE)).header("Transfer-Encoding", "chunked");
    repository
        .client
        .send(request.body("5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n"))
        .expect(201);
    assert_eq!(repository.get(FILE).expect(200).text(), "hello world");
}

#[test]
fn a_client_that_does_not_wait_for_continue_is_answered_as_well() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "eager");
    let put =
        |file| Request::new("PUT", &repository.path(file)).header("Expect", "100-continue").body("hello");
    repository.client.send(put(FILE)).expect(201);
    repository.client.send(put(FILE)).expect(409);
}
