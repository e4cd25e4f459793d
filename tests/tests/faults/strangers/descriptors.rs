//! File descriptors: the system limits the number of a server's open files and sockets.

use std::net::Ipv4Addr;

use packhouse_tests::http::basic;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server, payload};
use serde_json::json;

use super::h2c::{Http2, block_on};

/// The smallest limit with which a server can start.
const FEW: &str = "--nofile=256:256";
/// Number of package requests that a server with the limit `FEW` serves at one time.
const PLACES: usize = 16;

fn with_few() -> Server {
    Server::with().wrapped_in(&["prlimit", FEW]).start()
}

fn jar(number: usize) -> String {
    format!("org/example/n{number}/1/n{number}-1.jar")
}

#[test]
fn the_number_of_descriptors_is_raised_at_the_start() {
    let server = Server::with().wrapped_in(&["prlimit", "--nofile=128:4096"]).start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("4096"), "{line}");
}

#[test]
fn cached_answers_leave_descriptors_for_others() {
    let server = with_few();
    let repository = MavenRepository::create(&server, "many");
    let bytes = payload::bytes(1, 100_000);
    for number in 0..300 {
        repository.put(&jar(number), bytes.clone()).expect(201);
    }
    for number in 0..300 {
        assert_eq!(repository.get(&jar(number)).expect(200).body.len(), bytes.len());
    }
    repository.put(&jar(300), bytes).expect(201);
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    println!("{open} descriptors after 300 files");
    assert!(!server.log().contains("ddb_unavailable") && !server.log().contains("store unavailable"));
}

#[test]
fn a_crowd_of_connections_leaves_descriptors_for_requests() {
    // The server closes silent connections soon, so that the test is short.
    let server = Server::with().wrapped_in(&["prlimit", FEW]).env("PACKHOUSE_LIMITS_IDLE_MS", "500").start();
    let repository = MavenRepository::create(&server, "crowded");
    repository.put(&jar(0), payload::bytes(1, 100_000)).expect(201);
    let target = server.packages();
    let path = repository.path(&jar(0));
    let outcome = |answer: std::io::Result<packhouse_tests::Response>| match answer {
        Ok(answer) => Some((answer.status, answer.text())),
        Err(_) => None,
    };
    block_on(async {
        // The crowd has more connections than the server has descriptors. They come from many
        // addresses and are silent.
        let mut crowd = Vec::new();
        for number in 0..400_u32 {
            let source = Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(127, 0, 1, 0)) + number);
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((source, 0).into()).unwrap();
            let connected = socket.connect(target);
            if let Ok(Ok(stream)) = tokio::time::timeout(std::time::Duration::from_secs(5), connected).await {
                crowd.push(stream);
            }
            if number % 100 == 99 {
                let client: Client = repository.client.clone();
                let path = path.clone();
                let attempt =
                    tokio::task::spawn_blocking(move || client.try_send(Request::new("GET", &path)));
                let answer = outcome(attempt.await.unwrap());
                assert!(
                    answer.as_ref().is_none_or(|(status, _)| *status == 200),
                    "while {} connections are open: {answer:?}",
                    crowd.len()
                );
            }
        }
    });
    eventually("it serves as before", || {
        outcome(repository.client.try_send(Request::new("GET", &path))).filter(|(status, _)| *status == 200)
    });
    repository.put(&jar(1), payload::bytes(2, 100_000)).expect(201);
    let log = server.log();
    assert!(!log.contains("ddb_unavailable") && !log.contains("store unavailable"), "{log}");
    assert!(
        !log.contains("accepting a connection failed"),
        "accepting never fails because descriptors are missing"
    );
}

/// Requests that exceed the available descriptors wait, and the server refuses them in the end. The
/// error does not say that the store is unavailable.
#[test]
fn requests_that_exceed_the_descriptors_wait_or_are_refused() {
    let server = with_few();
    let repository = MavenRepository::create(&server, "waiting");
    repository.put(&jar(0), payload::bytes(1, 100_000)).expect(201);
    let credential = basic(OWNER, &repository.token.secret);
    block_on(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut uploads = Vec::new();
        for number in 1..=120_u8 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((Ipv4Addr::new(127, 0, 2, number), 0).into()).unwrap();
            let mut stream = socket.connect(server.packages()).await.unwrap();
            let path = repository.path(&jar(usize::from(number)));
            let head = format!(
                "PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {credential}\r\nContent-Length: 200000\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&payload::bytes(u64::from(number), 100_000)).await.unwrap();
            uploads.push((number, stream));
        }
        let mut answers = Vec::new();
        for (number, stream) in &mut uploads {
            let rest = payload::bytes(u64::from(*number), 200_000)[100_000..].to_vec();
            // The server has already answered and closed the requests that got no slot in time.
            let _ = stream.write_all(&rest).await;
            let mut answer = Vec::new();
            let _ = super::h2c::within("an answer", stream.read_to_end(&mut answer)).await;
            answers.push(String::from_utf8_lossy(&answer).into_owned());
        }
        for answer in &answers {
            let right = answer.starts_with("HTTP/1.1 201") || answer.contains("server_busy");
            assert!(right, "{answer}");
        }
        assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 201")));
    });
    repository.get(&jar(0)).expect(200);
    assert!(!server.log().contains("store unavailable"));
}

#[test]
fn uploads_in_all_slots_delay_no_call_on_the_same_listener() {
    let server = Server::with().wrapped_in(&["prlimit", FEW]).on_one_listener().start();
    let api = Api::below(server.anonymous(), "/portal");
    let body = json!({"name": "files", "format": "generic", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&id], &["read", "write"], None);
    let credential = basic(OWNER, &token.secret);
    let fields = [("authorization", credential.as_str())];
    block_on(async {
        let mut connection = Http2::open(server.packages(), 64 * 1024).await;
        let mut uploads = Vec::new();
        for number in 0..PLACES {
            let path = format!("/repositories/files/{number}.txt");
            uploads.push(connection.begin("PUT", &path, &fields, true).await);
        }
        let client = server.anonymous();
        let taken = format!("packhouse_requests_in_flight{{host=\"packages\"}} {PLACES}");
        let have_all = move || client.get("/metrics").text().lines().any(|line| line == taken).then_some(());
        let all_taken = tokio::task::spawn_blocking(|| eventually("the uploads have all slots", have_all));
        all_taken.await.unwrap();
        let (waiting, _) = connection.begin("GET", "/repositories/files/0.txt", &fields, false).await;
        let (call, _) = connection.begin("GET", "/portal/v1/me", &[], false).await;
        tokio::select! {
            biased;
            answer = waiting => panic!("a request without a slot was answered first: {answer:?}"),
            answer = call => assert_eq!(answer.unwrap().status(), 401),
        }
    });
}
