//! A database that goes away: 503 and nothing else, until it is back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::database::Postgres;
use packhouse_tests::server::eventually;
use packhouse_tests::{Client, MavenRepository, Response, Server};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn unavailable(answer: Response) {
    let answer = answer.expect(503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.field("error"), "ddb_unavailable");
}

#[test]
fn a_database_that_is_gone_is_503_and_its_return_is_noticed() {
    let mut postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let server = Server::with().arg("--database-url").arg(&postgres.url()).start();
    let repository = MavenRepository::create(&server, "away");
    repository.put(FILE, "before").expect(201);
    let api = Client::new(server.api());

    postgres.stop();
    unavailable(repository.get(FILE));
    unavailable(repository.put("org/example/a/2.0/a-2.0.jar", "meanwhile"));
    eventually("it is no longer ready", || (api.get("/readyz").status == 503).then_some(()));
    api.get("/livez").expect(200);

    postgres.resume();
    eventually("it is ready again", || (api.get("/readyz").status == 200).then_some(()));
    assert_eq!(repository.get(FILE).expect(200).text(), "before");
    repository.get("org/example/a/2.0/a-2.0.jar").expect(404);
    repository.put("org/example/a/2.0/a-2.0.jar", "afterwards").expect(201);
}
