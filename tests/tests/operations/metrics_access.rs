//! Access to `/metrics` on the API's listener. Only clients in the allowed networks have access,
//! directly and through proxies.

use packhouse_tests::{Client, Response, Server, server};

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
fn a_separate_metrics_listener_is_open_to_everyone_who_reaches_it() {
    let own = format!("127.0.0.1:{}", server::free_port());
    let server = Server::with()
        .env("PACKHOUSE_METRICS_LISTEN", &own)
        .env("PACKHOUSE_METRICS_ALLOW", "203.0.113.0/24")
        .start();
    Client::new(own.parse().unwrap()).get("/metrics").expect(200);
    Client::new(server.api()).get("/metrics").expect(404);
}
