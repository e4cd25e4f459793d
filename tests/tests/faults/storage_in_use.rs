//! The storage belongs to one database: servers refuse any other combination. Maintenance uses the
//! database's clock, and removes objects that the database does not know.

use packhouse_tests::clock::WrongClock;
use packhouse_tests::database::Postgres;
use packhouse_tests::s3::S3;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server, ServerBuilder, cli, digests, payload};
use serde_json::json;

const TWO_DAYS: i64 = 2 * 24 * 60 * 60;
const LARGE: usize = 200_000;

fn file(version: u32) -> String {
    format!("org/example/a/{version}/a-{version}.jar")
}

#[track_caller]
fn refused(builder: ServerBuilder, words: &[&str]) {
    let (status, output) = builder.start_refused();
    assert!(!status.success(), "{output}");
    for word in words {
        assert!(output.contains(word), "{word}: {output}");
    }
}

#[test]
fn a_server_refuses_to_start_with_another_storage_than_its_databases() {
    let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let on = |url: &str| Server::with().arg("--database-url").arg(url);
    let in_bucket = || on(&postgres.url()).env("PACKHOUSE_BLOBS", &s3.address());
    let body = payload::bytes(1, LARGE);
    let mut one = in_bucket().start();
    let repository = MavenRepository::create(&one, "a");
    repository.put(&file(1), body.clone()).expect(201);
    assert_eq!(s3.objects(), 1);

    refused(
        on(&postgres.url()),
        &["does not hold the blobs of this database", "the bucket s3://bucket", "set `blobs`"],
    );
    let part = s3.address().replace("s3://bucket?", "s3://bucket/elsewhere?");
    refused(on(&postgres.url()).env("PACKHOUSE_BLOBS", &part), &["does not hold the blobs of this database"]);
    // Another database cannot begin to use the bucket either.
    refused(
        Server::with().env("PACKHOUSE_BLOBS", &s3.address()),
        &["does not hold the blobs of this database"],
    );

    // A server with the database that owns the bucket starts as usual, and so does a second server.
    // The logs contain no secret.
    one.restart();
    let two = in_bucket().start();
    let client = Client::new(two.packages()).basic(OWNER, &repository.token.secret);
    assert_eq!(client.get(&repository.path(&file(1))).expect(200).body, body);
    assert!(!two.log().contains("secret_access_key"));
}

#[test]
fn a_change_from_folder_to_bucket_is_refused() {
    let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::with().data(data.path()).start();
    let repository = MavenRepository::create(&server, "a");
    repository.put(&file(1), payload::bytes(1, LARGE)).expect(201);
    server.kill9();
    let bucket = Server::with().data(data.path()).env("PACKHOUSE_BLOBS", &s3.address());
    refused(bucket, &["does not hold the blobs of this database", "the folder "]);
    server.restart();
    repository.get(&file(1)).expect(200);
}

#[test]
fn a_collection_by_a_wrong_clock_removes_no_live_upload_and_no_young_blob() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let with = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
    let server = with().start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "images", "format": "docker", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&id], &["read", "write"], None);
    let client = server.anonymous().basic(OWNER, &token.secret);
    let [first, second] = [1, 2].map(|seed| payload::bytes(seed, LARGE));
    let begun =
        client.send(Request::new("POST", "/v2/repositories/images/app/blobs/uploads/").body(Vec::new()));
    let session = begun.expect(202).header("location").unwrap().to_owned();
    let session = session.strip_prefix(&server.base_url()).unwrap_or(&session).to_owned();
    let add = |from: usize, bytes: &[u8]| {
        let range = format!("{from}-{}", from + bytes.len() - 1);
        let request = Request::new("PATCH", &session).header("Content-Range", &range);
        client.send(request.header("Content-Type", "application/octet-stream").body(bytes)).expect(202);
    };
    add(0, &first);
    // No record refers to the blob yet. Its pin protects it first, and then the grace period.
    let blob = payload::bytes(3, LARGE);
    let digest = format!("sha256:{}", digests::sha256(&blob));
    let whole = format!("/v2/repositories/images/app/blobs/uploads/?digest={digest}");
    client.send(Request::new("POST", &whole).body(blob.clone())).expect(201);

    let wrong = WrongClock::ahead(TWO_DAYS);
    let mut environment = wrong.environment().to_vec();
    environment.push(("PACKHOUSE_DATABASE_URL", postgres.url()));
    cli::packhouse_with(data.path(), &["gc"], &environment).success();
    let other =
        wrong.environment().into_iter().fold(with(), |with, (name, value)| with.env(name, &value)).start();
    let readiness = Client::new(other.api());
    eventually("the difference is reported", || {
        let output = readiness.get("/readyz").expect(200).json();
        let problem =
            output["degraded"].as_array()?.iter().find(|problem| problem["what"] == "clock")?.clone();
        let ahead = problem["detail"].as_str()?.split(' ').find_map(|word| word.parse::<i64>().ok())?;
        ((ahead / 1000 - TWO_DAYS).abs() < 30).then_some(())
    });
    assert!(other.log().contains("differs from the database's"), "{}", other.log());
    assert!(!Client::new(server.api()).get("/readyz").text().contains("\"clock\""));

    let there = client.get(&format!("/v2/repositories/images/app/blobs/{digest}")).expect(200);
    assert_eq!(there.body, blob);
    add(LARGE, &second);
    let both = [first, second].concat();
    let end = format!("{session}?digest=sha256:{}", digests::sha256(&both));
    client.send(Request::new("PUT", &end).body(Vec::new())).expect(201);
    let there = client.get(&format!("/v2/repositories/images/app/blobs/sha256:{}", digests::sha256(&both)));
    assert_eq!(there.expect(200).body, both);
}

#[test]
fn objects_newer_than_a_restored_database_are_collected() {
    let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let with = || {
        let server = Server::with().data(data.path()).env("PACKHOUSE_BLOBS", &s3.address());
        server.env("PACKHOUSE_GC_GRACE_MS", "1000").env("PACKHOUSE_GC_INTERVAL_MS", "0")
    };
    let mut server = with().start();
    let repository = MavenRepository::create(&server, "a");
    let bodies = [1, 2, 3].map(|seed| payload::bytes(seed, LARGE));
    repository.put(&file(0), bodies[0].clone()).expect(201);
    server.terminate();
    server.wait();
    let database = data.path().join("packhouse.db");
    let dump = data.path().join("dump");
    std::fs::copy(&database, &dump).unwrap();

    server.restart();
    repository.put(&file(1), bodies[1].clone()).expect(201);
    repository.put(&file(2), bodies[2].clone()).expect(201);
    assert_eq!(s3.objects(), 3);
    server.terminate();
    server.wait();
    std::fs::copy(&dump, &database).unwrap();
    for rest in ["packhouse.db-wal", "packhouse.db-shm"] {
        let _ = std::fs::remove_file(data.path().join(rest));
    }

    server.restart();
    repository.get(&file(1)).expect(404);
    let environment = [("PACKHOUSE_BLOBS", s3.address()), ("PACKHOUSE_GC_GRACE_MS", "1000".to_owned())];
    eventually("objects without a row are collected", || {
        cli::packhouse_with(data.path(), &["gc"], &environment).success();
        (s3.objects() == 1).then_some(())
    });
    assert_eq!(repository.get(&file(0)).expect(200).body, bodies[0]);
    repository.put(&file(1), bodies[1].clone()).expect(201);
    assert_eq!(repository.get(&file(1)).expect(200).body, bodies[1]);
}
