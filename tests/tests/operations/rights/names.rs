//! E-mail addresses and request hosts have one unambiguous reading.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Client, Connection, MavenRepository, Request, Response, Server};
use serde_json::json;

use super::{is, member, permissions};

const KELVIN: &str = "kelvin@example.com";
const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn post(server: &Server, path: &str, body: &serde_json::Value) -> Response {
    let request = Request::new("POST", path).header("Content-Type", "application/json");
    Client::new(server.api()).send(request.body(body.to_string()))
}

#[test]
fn an_email_address_that_only_looks_like_anothers_is_different() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "libs");
    repository.put(FILE, "hello").expect(201);
    member(&owner, KELVIN, &permissions(&[], "*", &["read"]));
    let sign_in = |email: &str| post(&server, "/v1/sessions", &json!({"email": email, "password": PASSWORD}));
    let packages = |email: &str| server.anonymous().basic(email, PASSWORD).get(&repository.path(FILE)).status;
    for right in [KELVIN, "Kelvin@Example.COM", " kelvin@example.com "] {
        sign_in(right).expect(201);
    }
    assert_eq!(packages("KELVIN@example.com"), 200);
    let none = json!({"organization": [], "repositories": []});
    // Letters of other languages are valid, and their composed and decomposed forms are equal.
    member(&owner, "M\u{dc}LLER@b\u{fc}cher.example", &none);
    sign_in("mu\u{308}ller@b\u{fc}cher.example").expect(201);
    // Each of these invalid addresses contains a full-width letter, an invisible mark, a Cyrillic
    // letter, or the kelvin sign (whose lower case is the ASCII letter k).
    let others = [
        "\u{212a}elvin@example.com",
        "\u{ff4b}elvin@example.com",
        "kel\u{200b}vin@example.com",
        "kelvin\u{200d}@example.com",
        "k\u{435}lvin@example.com",
        "kelvin@ex\u{430}mple.com",
    ];
    for other in others {
        let new = json!({"email": other, "password": PASSWORD, "permissions": none});
        is(&owner.post("/v1/members", &new), 400, "invalid_request");
        let invited = json!({"email": other, "permissions": none});
        is(&owner.post("/v1/invitations", &invited), 400, "invalid_request");
        is(&owner.post("/v1/subscribers", &json!({"name": "a", "email": other})), 400, "invalid_request");
    }
    is(&sign_in(others[0]), 401, "invalid_credentials");
    assert_eq!(packages(others[0]), 401);
}

#[test]
fn the_domain_of_a_provider_follows_the_rules_of_addresses() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8").start();
    let owner = Api::sign_in(&server);
    let settings = |domain: &str| json!({"issuer": "http://127.0.0.1:9/", "client_id": "packhouse", "email_domains": [domain]});
    for domain in ["\u{212a}elvin.example", "exam\u{200b}ple.com", " example.com", "a@b"] {
        is(&owner.send("PUT", "/v1/sso", &settings(domain)), 400, "invalid_sso_settings");
    }
    let stored = owner.send("PUT", "/v1/sso", &settings("Example.COM")).expect(200).json();
    assert_eq!(stored["email_domains"], json!(["example.com"]));
}

#[test]
fn a_request_of_the_api_names_one_host() {
    let server = Server::start();
    for path in ["/v1/openapi.json", "/v1/me", "/livez", "/metrics", "/nowhere"] {
        let send = |heads: &[&str]| {
            let mut connection = Connection::open(server.api()).unwrap();
            let fields: String = heads.iter().map(|head| format!("{head}\r\n")).collect();
            connection
                .send(format!("GET {path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes())
                .unwrap();
            connection.read_response(false).unwrap()
        };
        let one = send(&["Host: packhouse.example"]);
        assert_ne!(one.status, 400, "{path}: {}", one.text());
        for several in [
            &["Host: a.example", "Host: b.example"][..],
            &["Host: a.example", "host: a.example"],
            &["Host: a.example, b.example"],
            &["Host: a.example/x"],
            &["Host: a@b"],
            &[],
        ] {
            let answer = send(several);
            assert_eq!(answer.status, 400, "{path} {several:?}: {}", answer.text());
        }
    }
    let two = Request::new("GET", "/v1/me").header("Host", "a.example").header("Host", "b.example");
    let answer = Client::new(server.api()).send(two);
    is(&answer, 400, "invalid_request");
    assert_eq!(answer.header("x-request-id"), Some(answer.field("request_id").as_str()));
}
