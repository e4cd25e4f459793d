//! The database cost of authenticated requests. For 10,000 requests with 1,000 tokens, the server
//! reads each token from the database once, as long as nothing is written. This holds on SQLite
//! and, under a lease, on PostgreSQL. No request computes a password hash.

use std::io::BufRead as _;

use packhouse_store::{NewToken, Scope, Store, StoreConfig};
use packhouse_tests::database::Postgres;
use packhouse_tests::http::{Connection, basic};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, MavenRepository, Request, Server};
use sha2::{Digest as _, Sha256};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const TOKENS: usize = 1_000;
const ROUNDS: usize = 10;

/// 1,000 tokens of the owner, made directly in the database.
fn make_tokens(server: &Server, database_url: Option<String>) -> Vec<String> {
    let secrets: Vec<String> =
        (0..TOKENS).map(|number| format!("an imported secret, number {number}")).collect();
    let mut config = StoreConfig::new(server.data());
    config.database_url = database_url.unwrap_or(config.database_url);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config).await.unwrap();
        let owner = store.members_by_email(OWNER).await.unwrap().remove(0);
        let repository = store.list_repositories(owner.organization, None, 1).await.unwrap().remove(0);
        let token = |secret: &String| NewToken {
            secret_sha256: Sha256::digest(secret.as_bytes()).into(),
            name: "ci".to_owned(),
            scope: Scope { read: true, write: false },
            format: "generic".to_owned(),
            owner: Some(owner.id),
            created_by: OWNER.to_owned(),
            backing: None,
            backing_repository: None,
            repositories: vec![repository.id],
            expires_at: None,
            packages: None,
        };
        let tokens = secrets.iter().map(token).collect();
        assert_eq!(store.import_tokens(owner.organization, tokens, None).await.unwrap(), TOKENS as u64);
        store.close().await;
    });
    secrets
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).body;
    let line = text.lines().map(Result::unwrap).find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name}"));
    line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
}

/// Sends one request with each token over one connection. Returns how many SQL statements and
/// password hashes the server made for them.
fn round(server: &Server, path: &str, secrets: &[String]) -> (u64, u64) {
    let counted = || {
        (
            metric(server, "packhouse_store_statements_total"),
            metric(server, "packhouse_password_hashes_total"),
        )
    };
    let before = counted();
    let mut connection = Connection::open(server.packages()).unwrap();
    for secret in secrets {
        let request = Request::new("GET", path).header("Connection", "keep-alive");
        let request = request.header("Authorization", &basic(OWNER, secret));
        connection.send(&request.head("localhost")).unwrap();
        connection.read_response(false).unwrap().expect(200);
    }
    let after = counted();
    (after.0 - before.0, after.1 - before.1)
}

/// Upper limit for statements that the server runs for itself: it writes token use every 30 s,
/// shortens the audit log and looks for garbage.
const ITS_OWN: u64 = 40;

fn tell(database: &str, first: u64, later: u64) {
    eprintln!(
        "{database}: {first} statements for the first {TOKENS} requests, {later} for {} more",
        (ROUNDS - 1) * TOKENS
    );
}

fn measure(server: &Server, database_url: Option<String>) -> (u64, u64) {
    let repository = MavenRepository::create(server, "read");
    repository.put(FILE, "hello").expect(201);
    let secrets = make_tokens(server, database_url);
    let path = repository.path(FILE);
    let (first, hashes) = round(server, &path, &secrets);
    assert_eq!(hashes, 0, "no password hash when a token is used");
    let mut later = 0;
    for _ in 1..ROUNDS {
        let (statements, hashes) = round(server, &path, &secrets);
        assert_eq!(hashes, 0);
        later += statements;
    }
    (first, later)
}

#[test]
fn on_sqlite_no_statement_runs_without_a_write() {
    let server = Server::start();
    let (first, later) = measure(&server, None);
    tell("SQLite", first, later);
    assert!(first <= TOKENS as u64 + ITS_OWN, "{first}");
    assert!(later <= ITS_OWN, "{later}");
}

#[test]
fn on_postgresql_no_statement_runs_without_a_write() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let server = Server::with().arg("--database-url").arg(&postgres.url()).start();
    let (first, later) = measure(&server, Some(postgres.url()));
    tell("PostgreSQL", first, later);
    assert!(first <= TOKENS as u64 + ITS_OWN, "{first}");
    assert!(later <= ITS_OWN, "{later}");
}
