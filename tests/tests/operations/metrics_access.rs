//! Access to `/metrics` on the API's listener. Clients in the allowed networks have access,
//! directly and through proxies, and API tokens that read and whose owner manages the server.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, ApiToken, Client, Response, Server, server};
use serde_json::json;

fn refused(answer: &Response) {
    assert_eq!(
        (answer.status, answer.field("error").as_str()),
        (403, "metrics_not_allowed"),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains("packhouse_"), "{}", answer.text());
}

#[test]
fn a_client_on_the_same_machine_reads_the_metrics() {
    let server = Server::start();
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(text.contains("packhouse_ready 1"), "{text}");
}

#[test]
fn a_proxy_that_is_not_trusted_gets_no_metrics_for_its_clients() {
    let server = Server::start();
    for (name, value) in [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-For", "203.0.113.9"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("X-Forwarded-Host", "packages.example"),
        ("X-Forwarded-Proto", "https"),
    ] {
        refused(&Client::new(server.api()).with(name, value).get("/metrics"));
    }
}

#[test]
fn a_trusted_proxys_client_is_judged_by_its_own_address() {
    let server = Server::with().env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let through = |name: &str, value: &str| Client::new(server.api()).with(name, value).get("/metrics");
    for client in ["203.0.113.9", "203.0.113.9:4711", "unknown", "127.0.0.1, 203.0.113.9"] {
        refused(&through("X-Forwarded-For", client));
    }
    refused(&through("Forwarded", "for=203.0.113.9"));
    refused(&through("X-Forwarded-Proto", "https"));
    through("X-Forwarded-For", "127.0.0.1").expect(200);
    through("Forwarded", "for=\"[::1]:4711\"").expect(200);
}

#[test]
fn the_operator_allows_other_networks() {
    let server = Server::with()
        .env("PACKHOUSE_METRICS_ALLOW", "203.0.113.0/24")
        .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")
        .start();
    let client = Client::new(server.api());
    client.clone().with("X-Forwarded-For", "203.0.113.9:4711").get("/metrics").expect(200);
    refused(&client.get("/metrics"));
}

#[test]
fn an_api_token_of_a_member_who_manages_the_server_reads_the_metrics() {
    let server = Server::with().env("PACKHOUSE_METRICS_ALLOW", "203.0.113.0/24").start();
    let owner = Api::sign_in(&server);
    let metrics = |token: &ApiToken| token.client.get("/metrics");
    for scope in ["read", "all"] {
        let text = metrics(&owner.create_api_token("me", &[scope], &[])).expect(200).text();
        assert!(text.contains("packhouse_ready 1"), "{text}");
    }
    refused(&metrics(&owner.create_api_token("me", &["webhooks"], &[])));
    let member = json!({
        "email": "dev@example.com", "password": PASSWORD,
        "permissions": {"organization": ["manage-repositories"]},
    });
    owner.post("/v1/members", &member).expect(201);
    let dev = Api::sign_in_as(&server, "dev@example.com", PASSWORD);
    refused(&metrics(&dev.create_api_token("me", &["all"], &[])));
    let revoked = owner.create_api_token("me", &["read"], &[]);
    owner.call("DELETE", &format!("/v1/api-tokens/{}", revoked.id)).expect(204);
    refused(&metrics(&revoked));
    refused(&owner.call("GET", "/metrics"));
    refused(&Client::new(server.api()).with("Authorization", "Bearer pka_wrong").get("/metrics"));
}

#[test]
fn a_separate_metrics_listener_is_open_to_everyone_who_reaches_it() {
    let own = format!("127.0.0.1:{}", server::free_port());
    let server = Server::with()
        .env("PACKHOUSE_METRICS_LISTEN", &own)
        .env("PACKHOUSE_METRICS_ALLOW", "203.0.113.0/24")
        .start();
    Client::new(own.parse().unwrap()).get("/metrics").expect(200);
    Client::new(server.api()).get("/metrics").expect(404);
}
