//! Passwords under attack. Concurrent sign-ins with the right password share one check, and the
//! server never delays them. Guesses delay only the attacked account, until one client address
//! tries many accounts.

use packhouse_tests::race::at_once;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::json;

/// Starts a server behind a proxy that states the clients' addresses. The server has a private
/// repository and these members.
fn server(members: &[&str]) -> (Server, MavenRepository) {
    let server = Server::with().env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let repository = MavenRepository::create(&server, "private");
    let api = Api::sign_in(&server);
    for email in members {
        let permissions =
            json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
        let member = json!({"email": email, "password": PASSWORD, "permissions": permissions});
        api.post("/v1/members", &member).expect(201);
    }
    (server, repository)
}

/// Signs in through the API, from the client address `from`.
fn sign_in(server: &Server, from: &str, email: &str, password: &str) -> Response {
    let client = Client::new(server.api()).with("X-Forwarded-For", from);
    let body = json!({"email": email, "password": password}).to_string();
    client.send(Request::new("POST", "/v1/sessions").header("Content-Type", "application/json").body(body))
}

/// Requests a missing file from the repository host. Status 404 means that the password is right.
fn fetch(server: &Server, from: &str, email: &str, password: &str) -> Response {
    let client = server.anonymous().with("X-Forwarded-For", from).basic(email, password);
    client.get("/repositories/private/org/example/a/1.0/a-1.0.jar")
}

fn hashes(server: &Server) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix("packhouse_password_hashes_total "));
    line.unwrap_or("0").parse().unwrap()
}

#[test]
fn concurrent_right_passwords_share_one_check_and_are_never_delayed() {
    let (server, _) = server(&["ann@example.com"]);
    for round in 0..5 {
        let from = format!("192.0.2.{round}");
        let (signed_in, before) = (|_| sign_in(&server, &from, OWNER, PASSWORD).status, hashes(&server));
        assert_eq!(at_once(24, signed_in), [201; 24], "round {round} of sign-ins");
        assert!(hashes(&server) - before < 12, "{} hashes for 24 sign-ins", hashes(&server) - before);
        let from = format!("198.51.100.{round}");
        let fetched = |_| fetch(&server, &from, "ann@example.com", PASSWORD).status;
        assert_eq!(at_once(24, fetched), [404; 24], "round {round} of fetches");
    }
}

#[test]
fn concurrent_guesses_do_not_exceed_the_limit() {
    let (server, _) = server(&[]);
    for email in [OWNER, "nobody@example.com"] {
        let guess = |number: usize| sign_in(&server, "203.0.113.9", email, &format!("guess {number}"));
        let answers = at_once(24, guess);
        let looked_at = answers.iter().filter(|answer| answer.status == 401).count();
        assert_eq!(looked_at, 6, "the limit is the same for known and unknown accounts");
        let held_up = answers.iter().filter(|answer| answer.status == 429);
        assert!(
            held_up.clone().all(|answer| answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0)
        );
        assert_eq!(held_up.count(), 18);
    }
}

#[test]
fn one_script_behind_an_office_address_locks_out_no_other_account() {
    let (server, _) = server(&["ann@example.com", "ben@example.com", "eve@example.com"]);
    let office = "192.0.2.1";
    sign_in(&server, office, "eve@example.com", PASSWORD).expect(201);
    for _ in 0..40 {
        let status = fetch(&server, office, "ci@example.com", "an old password").status;
        assert!([401, 429].contains(&status), "{status}");
        sign_in(&server, office, "ci@example.com", "an old password");
    }
    sign_in(&server, office, "ci@example.com", "an old password").expect(429);
    for email in ["ann@example.com", "ben@example.com", "eve@example.com"] {
        sign_in(&server, office, email, PASSWORD).expect(201);
        fetch(&server, office, email, PASSWORD).expect(404);
    }
    // A script guesses Ann's password from the office's address. The server refuses further
    // guesses, but still accepts the right password from the same address.
    for _ in 0..40 {
        fetch(&server, office, "ann@example.com", "an old password");
    }
    fetch(&server, office, "ann@example.com", "another").expect(429);
    fetch(&server, office, "ann@example.com", PASSWORD).expect(404);
    // The guesses do not delay other accounts either.
    sign_in(&server, "198.51.100.1", "ben@example.com", PASSWORD).expect(201);
}

#[test]
fn a_known_account_still_signs_in_while_its_address_tries_many_accounts() {
    let (server, _) = server(&["ann@example.com", "new@example.com"]);
    // A client can use every address of its /64 network.
    let host = |number: usize| format!("2001:db8:1:2::{:x}", number + 1);
    sign_in(&server, &host(0), "ann@example.com", PASSWORD).expect(201);
    let tried: Vec<u16> = (0..40)
        .map(|number| {
            sign_in(&server, &host(number), &format!("user{number}@example.com"), "Spring2026").status
        })
        .collect();
    let looked_at = tried.iter().filter(|status| **status == 401).count();
    assert!(tried.iter().all(|status| [401, 429].contains(status)), "{tried:?}");
    assert!(looked_at < 20, "{looked_at} of 40 accounts were tried from one network: {tried:?}");
    sign_in(&server, &host(99), "new@example.com", PASSWORD).expect(429);
    sign_in(&server, &host(98), "ann@example.com", PASSWORD).expect(201);
    fetch(&server, &host(97), "ann@example.com", PASSWORD).expect(404);
    sign_in(&server, "2001:db8:1:3::1", "new@example.com", PASSWORD).expect(201);
}

#[test]
fn a_delayed_attacker_cannot_probe_a_cached_password() {
    let (server, _) = server(&["ann@example.com"]);
    let (home, elsewhere) = ("192.0.2.1", "203.0.113.1");
    fetch(&server, home, "ann@example.com", PASSWORD).expect(404);
    let held_up = (0..20)
        .find(|guess| fetch(&server, elsewhere, "ann@example.com", &format!("guess {guess}")).status == 429);
    assert!(held_up.is_some(), "guessing is limited");
    fetch(&server, elsewhere, "ann@example.com", PASSWORD).expect(429);
    fetch(&server, home, "ann@example.com", PASSWORD).expect(404);
}
