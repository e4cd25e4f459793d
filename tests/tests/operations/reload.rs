//! Settings that change while the server runs: by SIGHUP, and by a call of those who manage the server; and a server that takes no
//! changes.

use std::io::Write as _;

use packhouse_tests::http::Response;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Request, Server, cli};
use serde_json::json;

/// A server with a configuration file of its own.
fn configured(text: &str) -> (Server, tempfile::TempDir, impl Fn(&str)) {
    let home = tempfile::TempDir::new().unwrap();
    let file = home.path().join("packhouse.toml");
    std::fs::write(&file, text).unwrap();
    let server = Server::with().arg("--config").arg(&file.to_string_lossy()).start();
    (server, home, move |text: &str| std::fs::write(&file, text).unwrap())
}

#[test]
fn what_may_change_holds_at_once_and_the_rest_is_said() {
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
        // A connection that ends with nonsense is told of at this level.
        let mut connection = std::net::TcpStream::connect(server.api()).unwrap();
        connection.write_all(b"nonsense\r\n\r\n").unwrap();
        server.log().contains("\"DEBUG\"").then_some(())
    });
    // A mistake changes nothing, and is told with its place.
    write("log = \"info\"\n[limits]\napi_body_bytes = \"many\"\n");
    let refused = api.call("POST", "/v1/reload").expect(400).text();
    assert!(refused.contains("limits.api_body_bytes") && refused.contains("line 3"), "{refused}");
    api.post("/v1/repositories", &body).expect(413);
    // By a signal as well.
    write("log = \"info\"\n");
    server.signal("-HUP");
    eventually("the limit is as before", || {
        (api.post("/v1/repositories", &body).status != 413).then_some(())
    });
    assert!(server.log().contains("the settings were read again"), "{}", server.log());
}

#[test]
fn only_who_manages_the_server_may_reload() {
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
    // An owner elsewhere owns an organization and no server.
    cli::packhouse(server.data(), &["org", "create", "second", "--base-url", "http://second.test"], "")
        .well();
    let words = ["member", "create", "second@example.com", "--org", "second", "--owner", "--password-stdin"];
    cli::packhouse(server.data(), &words, PASSWORD).well();
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
fn a_server_that_takes_no_changes_serves_on() {
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
    // Reads and sign-in go on; so does a confirmation, which changes nothing by itself.
    assert_eq!(repository.get(path).expect(200).body, b"before");
    api.call("GET", "/v1/repositories").expect(200);
    let again = Api::sign_in(&server);
    again.confirm("create_token");
    again.call("DELETE", "/v1/sessions/current").expect(204);
    // Pages are shown; their forms change nothing, with a session and without, but sign in and out.
    let form = [("name", "new"), ("format", "maven"), ("kind", "hosted"), ("once", "1")];
    let refused = person.send_form("/repositories/new", &form).expect(503);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(refused.text().contains("takes no changes"), "{}", refused.text());
    let accept = [("name", "New"), ("password", PASSWORD)];
    let mut guest = Person::new(&server);
    guest.send_form(&format!("/invitations/{code}"), &accept).expect(503);
    Person::owner(&server).send_form("/sign-out", &[]).expect(303);
    // A stranger hears what he ever hears.
    server.anonymous().put(&repository.path("org/example/a/2.0/a-2.0.txt"), "x").expect(401);

    write("");
    server.signal("-HUP");
    eventually("it takes changes again", || {
        (api.post("/v1/repositories", &body).status == 201).then_some(())
    });
    repository.put("org/example/a/2.0/a-2.0.txt", "after").expect(201);
    // What was refused is not used up.
    let form = [("name", "newer"), ("format", "maven"), ("kind", "hosted"), ("once", "1")];
    person.send_form("/repositories/new", &form).expect(303);
    guest.send_form(&format!("/invitations/{code}"), &accept).expect(201);
    let metrics = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_read_only 0"), "{OWNER}: {metrics}");
}

#[test]
fn a_server_that_is_being_worked_on_says_so_in_the_operators_words() {
    let (server, _home, write) = configured("");
    let repository = MavenRepository::create(&server, "maven");
    let path = "org/example/a/1.0/a-1.0.txt";
    repository.put(path, "before").expect(201);
    let api = Api::sign_in(&server);
    let mut person = Person::owner(&server);
    write("maintenance = \"Back at <noon>.\"\n");
    assert_eq!(api.call("POST", "/v1/reload").expect(200).json()["applied"], json!(["maintenance"]));
    let said = |answer: Response| {
        let answer = answer.expect(503);
        assert_eq!(answer.header("retry-after"), Some("5"));
        answer
    };
    let refused = said(repository.get(path));
    assert_eq!(
        (refused.field("error"), refused.field("message")),
        ("maintenance".into(), "Back at <noon>.".into())
    );
    said(repository.put("org/example/a/2.0/a-2.0.txt", "after"));
    said(server.anonymous().get("/repositories/none/x"));
    // Where the path tells the format, in its shape.
    let refused = said(server.anonymous().get("/v2/none/manifests/x")).json();
    let said_there = (&refused["errors"][0]["code"], &refused["errors"][0]["message"]);
    assert_eq!(said_there, (&json!("UNAVAILABLE"), &json!("Back at <noon>.")));
    assert_eq!(said(api.call("GET", "/v1/repositories")).field("error"), "maintenance");
    let page = said(person.get("/repositories")).text();
    assert!(page.contains("Back at &lt;noon&gt;."), "{page}");
    said(Person::new(&server).get("/sign-in"));
    // Health goes on, and the operator's way back.
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
