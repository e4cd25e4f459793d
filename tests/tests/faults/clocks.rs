//! Servers of one PostgreSQL whose clocks are an hour wrong. Each server accepts a credential until
//! another server acknowledges its end, and no longer.

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::database::Postgres;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, MavenRepository, Request, Server};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const HOUR: i64 = 3_600;

#[test]
fn credentials_begin_and_end_for_all_servers_at_one_time() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let clock = JumpingClock::new();
    let with = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
    let right = with().start();
    let wrong =
        clock.environment().into_iter().fold(with(), |with, (name, value)| with.env(name, &value)).start();
    let repository = MavenRepository::create(&right, "shared");
    repository.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&right);
    // A client with the same session for the given server.
    let calls = |api: &Api, server: &Server| api.client().clone().at(server.api());
    let post = |client: &Client, path: &str, body: &serde_json::Value| {
        let request = Request::new("POST", path).header("Content-Type", "application/json");
        client.send(request.body(body.to_string()))
    };
    for ahead in [-HOUR, HOUR] {
        clock.set(ahead);
        for (one, other) in [(&right, &wrong), (&wrong, &right)] {
            let (here, there) = (calls(&api, one), calls(&api, other));
            let token = api.create_token(&[&repository.id], &["read"], None);
            let token_client = Client::new(other.packages()).basic(OWNER, &token.secret);
            token_client.get(&repository.path(FILE)).expect(200);
            // The test confirms on one server, and uses the confirmation to rotate the token on the
            // second. The first server must then refuse the old token.
            let password = packhouse_tests::server::PASSWORD;
            let confirm = json!({"action": "rotate_token", "password": password});
            let confirmation =
                post(&there, "/v1/confirmations", &confirm).expect(201).field("confirmation_token");
            let path = format!("/v1/tokens/{}/rotation", token.id);
            let body = json!({"overlap_hours": 0, "confirmation_token": confirmation});
            post(&here, &path, &body).expect(201);
            token_client.get(&repository.path(FILE)).expect(401);
            assert_eq!(
                here.send(Request::new("GET", "/v1/me")).expect(200).status,
                there.send(Request::new("GET", "/v1/me")).expect(200).status
            );
        }
        // A token that expires in half an hour works on both servers.
        let half_an_hour = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let until = u64::try_from(half_an_hour.as_millis()).unwrap() + 1_800_000;
        let token = api.create_token(&[&repository.id], &["read"], Some(until));
        for server in [&right, &wrong] {
            let token_client = Client::new(server.packages()).basic(OWNER, &token.secret);
            token_client.get(&repository.path(FILE)).expect(200);
        }
    }
}
