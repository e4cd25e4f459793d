//! Answers while the database or one of its tables is unavailable: 503 with a code that says what
//! is missing, until it is back.

use packhouse_tests::database::{self, Postgres};
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn unavailable(answer: Response) {
    let answer = answer.expect(503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.field("error"), "ddb_unavailable");
}

#[test]
fn a_missing_database_is_503_and_its_return_is_noticed() {
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

/// Makes a table unavailable and available again.
trait TableAccess {
    fn take(&self, table: &str);
    fn give(&self, table: &str);
}

impl TableAccess for Postgres {
    fn take(&self, table: &str) {
        self.sql(&format!("revoke select on {table} from plain"));
    }

    fn give(&self, table: &str) {
        self.sql(&format!("grant select on {table} to plain"));
    }
}

/// SQLite has no privileges, so this implementation renames the table.
impl TableAccess for Server {
    fn take(&self, table: &str) {
        database::sqlite(self, &format!("alter table {table} rename to {table}_away"));
    }

    fn give(&self, table: &str) {
        database::sqlite(self, &format!("alter table {table}_away rename to {table}"));
    }
}

#[track_caller]
fn assert_code(answer: Response, code: &str) {
    let answer = answer.expect(503);
    assert_eq!(answer.field("error"), code);
    let retry_after = (code != "membership_lookup_unavailable").then_some("5");
    assert_eq!(answer.header("retry-after"), retry_after, "{code}");
    assert!(!answer.text().contains("away") && !answer.text().contains("denied"), "{}", answer.text());
}

fn each_table_alone(server: &Server, tables: &dyn TableAccess) {
    let repository = MavenRepository::create(server, "parts");
    repository.put(FILE, "before").expect(201);
    let api = Api::sign_in(server);
    let sign_in = || {
        let body =
            json!({"email": packhouse_tests::server::OWNER, "password": packhouse_tests::server::PASSWORD});
        let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
        Client::new(server.api()).send(request.body(body.to_string()))
    };
    let list = "/v1/tokens?member=owner@example.com";
    let in_registry_style = |code: &str| {
        let answer = repository.client.get("/v2/repositories/parts/image/manifests/latest").expect(503);
        assert_eq!(answer.json()["errors"][0]["code"], "UNAVAILABLE");
        assert_eq!((answer.field("code").as_str(), answer.header("retry-after")), (code, Some("5")));
    };

    tables.take("sso_settings");
    assert_code(repository.get(FILE), "sso_config_unavailable");
    in_registry_style("sso_config_unavailable");
    assert_code(repository.put("org/example/a/2.0/a-2.0.jar", "meanwhile"), "sso_config_unavailable");
    assert_code(server.anonymous().get(&repository.path(FILE)), "sso_config_unavailable");
    assert_code(api.call("GET", "/v1/me"), "sso_config_unavailable");
    assert_code(api.call("GET", list), "sso_config_unavailable");
    assert_code(sign_in(), "sso_config_unavailable");

    tables.take("members");
    assert_code(repository.get(FILE), "ddb_unavailable");
    assert_code(api.call("GET", "/v1/me"), "ddb_unavailable");
    tables.give("sso_settings");

    assert_code(repository.get(FILE), "repository_token_identity_unavailable");
    in_registry_style("repository_token_identity_unavailable");
    assert_code(api.call("GET", list), "membership_lookup_unavailable");
    assert_code(api.call("GET", "/v1/me"), "membership_lookup_unavailable");
    assert_code(sign_in(), "membership_lookup_unavailable");
    let by_password =
        server.anonymous().basic(packhouse_tests::server::OWNER, packhouse_tests::server::PASSWORD);
    assert_code(by_password.get(&repository.path(FILE)), "ddb_unavailable");
    tables.give("members");

    tables.take("tokens");
    assert_code(repository.get(FILE), "ddb_unavailable");
    in_registry_style("ddb_unavailable");
    assert_code(api.call("GET", list), "ddb_unavailable");
    tables.take("sso_settings");
    assert_code(repository.get(FILE), "ddb_unavailable");
    assert_code(api.call("GET", list), "ddb_unavailable");
    tables.give("sso_settings");
    tables.give("tokens");

    tables.take("sessions");
    assert_code(api.call("GET", "/v1/me"), "ddb_unavailable");
    tables.give("sessions");

    assert_eq!(repository.get(FILE).expect(200).text(), "before");
    api.call("GET", list).expect(200);
    sign_in().expect(201);
}

#[test]
fn a_table_that_cannot_be_read_has_its_own_code_on_sqlite() {
    let server = Server::start();
    each_table_alone(&server, &server);
}

#[test]
fn a_table_that_cannot_be_read_has_its_own_code_on_postgresql() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    // This lock prevents leases. Each request then queries the database, which this test requires.
    let _no_lease = postgres.hold("select pg_advisory_xact_lock_shared(8097864527)");
    let server = Server::with().arg("--database-url").arg(&postgres.url_of_a_plain_role()).start();
    each_table_alone(&server, &postgres);
}
