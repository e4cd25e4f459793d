//! Settings that change while the server runs, by SIGHUP and by a call of an operator. Also
//! read-only mode and maintenance mode.

use std::io::Write as _;

use packhouse_tests::http::Response;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Request, Server, cli};
use serde_json::json;

/// Starts a server with its own configuration file. Also returns a function that rewrites the file.
fn configured(text: &str) -> (Server, tempfile::TempDir, impl Fn(&str)) {
    let home = tempfile::TempDir::new().unwrap();
    let file = home.path().join("packhouse.toml");
    std::fs::write(&file, text).unwrap();
    let server = Server::with().arg("--config").arg(&file.to_string_lossy()).start();
    (server, home, move |text: &str| std::fs::write(&file, text).unwrap())
}

#[test]
fn reloadable_settings_apply_at_once_and_the_others_are_reported() {
    let (server, _home, write) = configured("log = \"info\"\n");
    let api = Api::sign_in(&server);
    let body = json!({"name": "x".repeat(300), "format": "maven", "kind": "hosted"});
    assert_ne!(api.post("/v1/repositories", &body).status, 413);
    write("log = \"debug\"\naudit_days = 7\n[limits]\napi_body_bytes = 200\n");
    let answer = api.call("POST", "/v1/reload").expect(200).json();
    assert_eq!(answer["applied"], json!(["limits.api_body_bytes", "log"]));
    assert_eq!(answer["needs_restart"], json!(["audit_days"]));
    api.post("/v1/repositories", &body).expect(413);
    eventually("the log is at debug", || {
        // At the level `debug` the server logs a connection that ends with an invalid request.
        let mut connection = std::net::TcpStream::connect(server.api()).unwrap();
        connection.write_all(b"nonsense\r\n\r\n").unwrap();
        server.log().contains("\"DEBUG\"").then_some(())
    });
    // A file with an error changes no setting, and the error names the line.
    write("log = \"info\"\n[limits]\napi_body_bytes = \"many\"\n");
    let refused = api.call("POST", "/v1/reload").expect(400).text();
    assert!(refused.contains("limits.api_body_bytes") && refused.contains("line 3"), "{refused}");
    api.post("/v1/repositories", &body).expect(413);
    // A signal reloads the settings as well.
    write("log = \"info\"\n");
    server.signal("-HUP");
    eventually("the limit is as before", || {
        (api.post("/v1/repositories", &body).status != 413).then_some(())
    });
    assert!(server.log().contains("settings reloaded"), "{}", server.log());
}

#[test]
fn only_operators_of_the_server_may_reload() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    assert!(owner.call("GET", "/v1/me").expect(200).text().contains("manage-server"));
    let make = |email: &str, permissions: &serde_json::Value| {
        let body = json!({"email": email, "password": PASSWORD, "permissions": permissions});
        owner.post("/v1/members", &body)
    };
    make("some@example.com", &json!({"organization": ["manage-members", "manage-repositories"]})).expect(201);
    make("ops@example.com", &json!({"organization": ["manage-server"]})).expect(201);
    let some = Api::sign_in_as(&server, "some@example.com", PASSWORD);
    let refused = some.call("POST", "/v1/reload").expect(403);
    assert_eq!(refused.field("error"), "insufficient_permissions");
    Api::sign_in_as(&server, "ops@example.com", PASSWORD).call("POST", "/v1/reload").expect(200);
    server_anonymous(&server);
    // The owner of another organization does not manage the server.
    cli::packhouse(server.data(), &["org", "create", "second", "--base-url", "http://second.test"], "")
        .success();
    let words = ["member", "create", "second@example.com", "--org", "second", "--owner", "--password-stdin"];
    cli::packhouse(server.data(), &words, PASSWORD).success();
    let second = Api::sign_in_as(&server, "second@example.com", PASSWORD);
    second.call("POST", "/v1/reload").expect(403);
    assert!(!second.call("GET", "/v1/me").expect(200).text().contains("manage-server"));
    let body = json!({"email": "third@example.com", "password": PASSWORD, "permissions": {"organization": ["manage-server"]}});
    second.post("/v1/members", &body).expect(403);
}

fn server_anonymous(server: &Server) {
    let client = packhouse_tests::Client::new(server.api());
    client.send(Request::new("POST", "/v1/reload")).expect(401);
}

#[test]
fn a_read_only_server_keeps_serving_reads() {
    let (server, _home, write) = configured("");
    let repository = MavenRepository::create(&server, "maven");
    let path = "org/example/a/1.0/a-1.0.txt";
    repository.put(path, "before").expect(201);
    let api = Api::sign_in(&server);
    let mut person = Person::owner(&server);
    let invited = json!({"email": "new@example.com", "permissions": {}});
    let code = api.post("/v1/invitations", &invited).expect(201).field("code");
    write("read_only = true\n");
    assert_eq!(api.call("POST", "/v1/reload").expect(200).json()["applied"], json!(["read_only"]));

    let refused = repository.put("org/example/a/2.0/a-2.0.txt", "after").expect(503);
    assert_eq!((refused.field("error").as_str(), refused.header("retry-after")), ("read_only", Some("5")));
    repository.client.send(Request::new("DELETE", &repository.path(path))).expect(503);
    let body = json!({"name": "new", "format": "maven", "kind": "hosted"});
    let refused = api.post("/v1/repositories", &body).expect(503);
    assert_eq!((refused.field("error").as_str(), refused.header("retry-after")), ("read_only", Some("5")));
    api.call("DELETE", &format!("/v1/tokens/{}", repository.token.id)).expect(503);
    // Reads and sign-in still work. A confirmation works too, because it changes nothing by itself.
    assert_eq!(repository.get(path).expect(200).body, b"before");
    api.call("GET", "/v1/repositories").expect(200);
    let again = Api::sign_in(&server);
    again.confirm("create_token");
    again.call("DELETE", "/v1/sessions/current").expect(204);
    // The portal serves its pages. Their forms change nothing, with a session or without, except
    // for sign-in and sign-out.
    let form = [("name", "new"), ("format", "maven"), ("kind", "hosted"), ("once", "1")];
    let refused = person.send_form("/repositories/new", &form).expect(503);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(refused.text().contains("is in read-only mode"), "{}", refused.text());
    let accept = [("name", "New"), ("password", PASSWORD)];
    let mut guest = Person::new(&server);
    guest.send_form(&format!("/invitations/{code}"), &accept).expect(503);
    Person::owner(&server).send_form("/sign-out", &[]).expect(303);
    // An unauthenticated client gets 401, as it does without read-only mode.
    server.anonymous().put(&repository.path("org/example/a/2.0/a-2.0.txt"), "x").expect(401);

    write("");
    server.signal("-HUP");
    eventually("changes are accepted again", || {
        (api.post("/v1/repositories", &body).status == 201).then_some(())
    });
    repository.put("org/example/a/2.0/a-2.0.txt", "after").expect(201);
    // A person can submit a refused form again.
    let form = [("name", "newer"), ("format", "maven"), ("kind", "hosted"), ("once", "1")];
    person.send_form("/repositories/new", &form).expect(303);
    guest.send_form(&format!("/invitations/{code}"), &accept).expect(201);
    let metrics = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_read_only 0"), "{OWNER}: {metrics}");
}

#[test]
fn maintenance_mode_shows_the_operators_message() {
    let (server, _home, write) = configured("");
    let repository = MavenRepository::create(&server, "maven");
    let path = "org/example/a/1.0/a-1.0.txt";
    repository.put(path, "before").expect(201);
    let api = Api::sign_in(&server);
    let mut person = Person::owner(&server);
    write("maintenance = \"Back at <noon>.\"\n");
    assert_eq!(api.call("POST", "/v1/reload").expect(200).json()["applied"], json!(["maintenance"]));
    let maintenance = |answer: Response| {
        let answer = answer.expect(503);
        assert_eq!(answer.header("retry-after"), Some("5"));
        answer
    };
    let refused = maintenance(repository.get(path));
    assert_eq!(
        (refused.field("error"), refused.field("message")),
        ("maintenance".into(), "Back at <noon>.".into())
    );
    maintenance(repository.put("org/example/a/2.0/a-2.0.txt", "after"));
    maintenance(server.anonymous().get("/repositories/none/x"));
    // If the path reveals the format, the error has the format's shape.
    let refused = maintenance(server.anonymous().get("/v2/none/manifests/x")).json();
    let error = (&refused["errors"][0]["code"], &refused["errors"][0]["message"]);
    assert_eq!(error, (&json!("UNAVAILABLE"), &json!("Back at <noon>.")));
    assert_eq!(maintenance(api.call("GET", "/v1/repositories")).field("error"), "maintenance");
    let page = maintenance(person.get("/repositories")).text();
    assert!(page.contains("Back at &lt;noon&gt;."), "{page}");
    maintenance(Person::new(&server).get("/sign-in"));
    // Health checks still work, and an operator can still end maintenance.
    for host in [server.packages(), server.api()] {
        for path in ["/livez", "/readyz"] {
            packhouse_tests::Client::new(host).get(path).expect(200);
        }
    }
    let metrics = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_maintenance 1"), "{metrics}");
    write("");
    Api::sign_in(&server).call("POST", "/v1/reload").expect(200);
    assert_eq!(repository.get(path).expect(200).body, b"before");
}
