//! The removal of a repository with many files. The server hides the repository at once, and other
//! repositories accept publishes during the removal. A server that is killed in the middle
//! continues the removal after its restart.

use packhouse_tests::server::eventually;
use packhouse_tests::{Api, MavenRepository, Server, database};
use serde_json::json;
use std::time::{Duration, Instant};

/// Number of records of the repository. The test writes them directly into the database, because as
/// many publishes would take minutes.
const RECORDS: u64 = 30_000;

fn count(server: &Server, table: &str, id: &str) -> u64 {
    let sql = format!("SELECT COUNT(*) FROM {table} WHERE repository = {id}");
    database::sqlite(server, &sql).trim().parse().unwrap()
}

#[test]
fn a_killed_server_continues_a_removal() {
    let mut server = Server::start();
    let api = Api::sign_in(&server);
    let other = MavenRepository::create(&server, "kept");
    let large = MavenRepository::create(&server, "large");
    large.put("org/example/a/1.0/a-1.0.jar", "bytes").expect(201);
    let id = &large.id;
    database::sqlite(
        &server,
        &format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {RECORDS}) \
             INSERT INTO records (repository, key, value, revision, blobs) \
             SELECT {id}, 'file/copy/' || i, value, revision, blobs FROM n, records WHERE repository = {id} AND blobs IS NOT NULL; \
             INSERT INTO record_blobs (blob, repository, key) \
             SELECT CAST(blobs AS INTEGER), repository, key FROM records WHERE repository = {id} AND key LIKE 'file/copy/%'"
        ),
    );
    assert!(count(&server, "records", id) > RECORDS);

    let begun = Instant::now();
    api.call("DELETE", &format!("/v1/repositories/{id}")).expect(204);
    assert!(begun.elapsed() < Duration::from_secs(5), "the deletion took {:?}", begun.elapsed());
    let gone = |server: &Server| {
        let api = Api::sign_in(server);
        api.call("GET", &format!("/v1/repositories/{id}")).expect(404);
        let listed = api.call("GET", "/v1/repositories").expect(200).json().to_string();
        assert!(!listed.contains(&format!("\"{id}\"")), "{listed}");
        assert!(!api.call("GET", "/v1/tokens").expect(200).json().to_string().contains(&format!("\"{id}\"")));
        assert_ne!(large.get("org/example/a/1.0/a-1.0.jar").status, 200);
    };
    gone(&server);
    api.create_maven("large", &json!({}));

    let left = eventually("the removal begins", || {
        other.put(&format!("org/example/b/{}/b-{0}.jar", begun.elapsed().as_nanos()), "bytes").expect(201);
        Some(count(&server, "records", id)).filter(|left| *left < RECORDS)
    });
    assert!(left > 0, "all of it was removed in one step");
    server.kill9();
    server.restart();
    gone(&server);
    other.put("org/example/c/1.0/c-1.0.jar", "bytes").expect(201);
    eventually("the rest is removed", || {
        let rows = database::sqlite(&server, &format!("SELECT COUNT(*) FROM repositories WHERE id = {id}"));
        (rows.trim() == "0").then_some(())
    });
    assert_eq!((count(&server, "records", id), count(&server, "record_blobs", id)), (0, 0));
    assert_eq!(count(&server, "files", id), 0);
}
