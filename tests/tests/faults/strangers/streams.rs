//! HTTP/2 streams whose answers the client does not read.

use packhouse_tests::http::basic;
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server, payload};

use super::MIB;
use super::h2c::{Http2, block_on, take, within};

const LARGE: &str = "org/example/large/1.0/large-1.0.jar";
const SMALL: &str = "org/example/small/1.0/small-1.0.jar";
const LARGE_BYTES: usize = 3 * 1024 * 1024;
const STREAMS: usize = 120;

fn repository(server: &Server) -> (MavenRepository, String) {
    let repository = MavenRepository::create(server, "stalled");
    repository.put(LARGE, payload::bytes(1, LARGE_BYTES)).expect(201);
    repository.put(SMALL, "small").expect(201);
    let credential = basic(OWNER, &repository.token.secret);
    (repository, credential)
}

#[test]
fn unread_answers_hold_little_memory() {
    let server = Server::start();
    let (repository, credential) = repository(&server);
    let fields = [("authorization", credential.as_str())];
    repository.get(LARGE).expect(200);
    let before = server.rss();
    let ((), most) = server.watched(|| {
        block_on(async {
            let mut connections = Vec::new();
            for _ in 0..2 {
                let mut connection = Http2::open(server.packages(), 64 * 1024).await;
                let mut answers = Vec::new();
                for _ in 0..STREAMS {
                    let answer = connection.get(&repository.path(LARGE), &fields).await;
                    assert_eq!(answer.status(), 200);
                    answers.push(answer.into_body());
                }
                // Unread answers do not delay an answer that the client reads.
                let small = connection.get(&repository.path(SMALL), &fields).await;
                assert_eq!(take(small.into_body()).await.unwrap(), 5);
                connections.push((connection, answers));
            }
            // An unread answer continues when the client reads it after all.
            let (_, answers) = &mut connections[1];
            assert_eq!(take(answers.pop().unwrap()).await.unwrap(), LARGE_BYTES as u64);
        });
    });
    let grown = most.saturating_sub(before);
    println!("{} unread answers: {} KiB more", 2 * STREAMS, grown / 1024);
    assert!(grown < 64 * MIB, "{} MiB more for {} answers", grown / MIB, 2 * STREAMS);
}

#[test]
fn an_unread_stream_is_reset_and_the_connection_stays_open() {
    let server = Server::with().env("PACKHOUSE_LIMITS_SEND_IDLE_MS", "500").start();
    let (repository, credential) = repository(&server);
    let fields = [("authorization", credential.as_str())];
    block_on(async {
        // The window is 0, so the server may send no byte of these answers until the client allows
        // it.
        let mut connection = Http2::open(server.packages(), 0).await;
        for path in [LARGE, SMALL] {
            let answer = connection.get(&repository.path(path), &fields).await;
            assert_eq!(answer.status(), 200);
            let mut body = answer.into_body();
            let end = within("the stream is reset", body.data()).await;
            let error = end.expect("it does not end like a complete answer").unwrap_err();
            assert!(error.is_reset() && error.is_remote(), "{error}");
        }
        assert!(connection.is_open());

        let mut connection = Http2::open(server.packages(), 64 * 1024).await;
        let stalled = connection.get(&repository.path(LARGE), &fields).await.into_body();
        let taken = connection.get(&repository.path(LARGE), &fields).await.into_body();
        assert_eq!(take(taken).await.unwrap(), LARGE_BYTES as u64);
        assert!(take_after_reset(stalled).await, "the earlier bytes arrive, and then the stream is reset");
        let small = connection.get(&repository.path(SMALL), &fields).await;
        assert_eq!(take(small.into_body()).await.unwrap(), 5, "the connection still works");
    });
}

/// Reads nothing until the stream ends; returns true if the server reset the stream.
async fn take_after_reset(mut body: h2::RecvStream) -> bool {
    loop {
        match within("the stream is reset", body.data()).await {
            Some(Ok(_)) => (),
            Some(Err(error)) => return error.is_reset(),
            None => return false,
        }
    }
}

#[test]
fn answers_over_http_2_are_complete() {
    let server = Server::start();
    let (repository, credential) = repository(&server);
    let fields = [("authorization", credential.as_str())];
    block_on(async {
        let mut connection = Http2::open(server.packages(), 1024 * 1024).await;
        let mut bodies = Vec::new();
        for number in 0..STREAMS {
            let path = if number % 2 == 0 { LARGE } else { SMALL };
            bodies.push((path, connection.get(&repository.path(path), &fields).await.into_body()));
        }
        for (path, body) in bodies {
            let length = if path == LARGE { LARGE_BYTES as u64 } else { 5 };
            assert_eq!(take(body).await.unwrap(), length);
        }
        let (head, _) = connection.begin("HEAD", &repository.path(LARGE), &fields, false).await;
        let head = within("an answer", head).await.unwrap();
        assert_eq!((head.status().as_u16(), take(head.into_body()).await.unwrap()), (200, 0));
    });
}
