//! A database that goes away, whole or a table of it: 503 with the code that says which, until it is back.

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

/// How a table is taken away and given back.
trait Taking {
    fn take(&self, table: &str);
    fn give(&self, table: &str);
}

impl Taking for Postgres {
    fn take(&self, table: &str) {
        self.sql(&format!("revoke select on {table} from plain"));
    }

    fn give(&self, table: &str) {
        self.sql(&format!("grant select on {table} to plain"));
    }
}

/// SQLite knows no rights: there the table has another name meanwhile.
impl Taking for Server {
    fn take(&self, table: &str) {
        database::sqlite(self, &format!("alter table {table} rename to {table}_away"));
    }

    fn give(&self, table: &str) {
        database::sqlite(self, &format!("alter table {table}_away rename to {table}"));
    }
}

#[track_caller]
fn said(answer: Response, code: &str) {
    let answer = answer.expect(503);
    assert_eq!(answer.field("error"), code);
    let wanted = (code != "membership_lookup_unavailable").then_some("5");
    assert_eq!(answer.header("retry-after"), wanted, "{code}");
    assert!(!answer.text().contains("away") && !answer.text().contains("denied"), "{}", answer.text());
}

fn each_table_alone(server: &Server, tables: &dyn Taking) {
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
    said(repository.get(FILE), "sso_config_unavailable");
    in_registry_style("sso_config_unavailable");
    said(repository.put("org/example/a/2.0/a-2.0.jar", "meanwhile"), "sso_config_unavailable");
    said(server.anonymous().get(&repository.path(FILE)), "sso_config_unavailable");
    said(api.call("GET", "/v1/me"), "sso_config_unavailable");
    said(api.call("GET", list), "sso_config_unavailable");
    said(sign_in(), "sso_config_unavailable");

    tables.take("members");
    said(repository.get(FILE), "ddb_unavailable");
    said(api.call("GET", "/v1/me"), "ddb_unavailable");
    tables.give("sso_settings");

    said(repository.get(FILE), "repository_token_identity_unavailable");
    in_registry_style("repository_token_identity_unavailable");
    said(api.call("GET", list), "membership_lookup_unavailable");
    said(api.call("GET", "/v1/me"), "membership_lookup_unavailable");
    said(sign_in(), "membership_lookup_unavailable");
    let by_password =
        server.anonymous().basic(packhouse_tests::server::OWNER, packhouse_tests::server::PASSWORD);
    said(by_password.get(&repository.path(FILE)), "ddb_unavailable");
    tables.give("members");

    tables.take("tokens");
    said(repository.get(FILE), "ddb_unavailable");
    in_registry_style("ddb_unavailable");
    said(api.call("GET", list), "ddb_unavailable");
    tables.take("sso_settings");
    said(repository.get(FILE), "ddb_unavailable");
    said(api.call("GET", list), "ddb_unavailable");
    tables.give("sso_settings");
    tables.give("tokens");

    tables.take("sessions");
    said(api.call("GET", "/v1/me"), "ddb_unavailable");
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
    // No lease is taken meanwhile: each request asks the database, which is what this is about.
    let _no_lease = postgres.hold("select pg_advisory_xact_lock_shared(8097864527)");
    let server = Server::with().arg("--database-url").arg(&postgres.url_of_a_plain_role()).start();
    each_table_alone(&server, &postgres);
}
