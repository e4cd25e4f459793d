//! Sign-in by a provider: against one that lies in every way it can, and against one that others wrote.

pub(crate) mod browser;
mod page;
pub(crate) mod provider;
mod real;

use browser::{Browser, query};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, database};
use provider::{CLIENT, Provider, SECRET, Twist, User};
use serde_json::{Value, json};

fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

fn user(subject: &str, email: &str) -> User {
    User { subject: subject.to_owned(), email: email.to_owned() }
}

fn put(api: &Api, body: &Value) -> Response {
    let request = Request::new("PUT", "/v1/sso").header("Content-Type", "application/json");
    api.request(request.body(body.to_string()))
}

/// Settings that make members of example.com, who may read everything.
fn settings(issuer: &str) -> Value {
    json!({"issuer": issuer, "client_id": CLIENT, "client_secret": SECRET, "email_domains": ["Example.com"],
        "permissions": {"repositories": [{"repository": "*", "actions": ["read"]}]}})
}

/// Goes to the provider; answers the query with which the browser comes there.
fn go(server: &Server, browser: &mut Browser, path: &str) -> std::collections::HashMap<String, String> {
    let there = browser.get(&format!("http://{}{path}", server.api())).expect(303);
    query(there.header("location").unwrap())
}

/// Comes back from there.
fn come(server: &Server, browser: &mut Browser, code: &str, state: &str) -> Response {
    browser.get(&format!("http://{}/v1/sso/callback?code={code}&state={state}", server.api()))
}

/// There and back as this user.
fn sign_in(server: &Server, provider: &Provider, browser: &mut Browser, user: &User) -> Response {
    let asked = go(server, browser, "/v1/sso/start");
    let code = provider.sign_in(&asked, user);
    come(server, browser, &code, &asked["state"])
}

#[track_caller]
fn refused(server: &Server, browser: &Browser, answer: Response, words: &str) {
    let answer = answer.expect(401);
    assert_eq!(answer.field("error"), "sso_refused");
    assert!(answer.field("message").contains(words), "{words:?} is not in {}", answer.text());
    assert_eq!(browser.cookie(server.api(), "packhouse_session"), None);
}

/// Confirms on the page that a provider's identity is the member's.
#[track_caller]
fn confirm_link(server: &Server, browser: &mut Browser, password: &str) -> Response {
    let page = format!("http://{}/sign-in/link", server.api());
    let shown = browser.get(&page).expect(200).text();
    let csrf = shown.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    browser.post(&page, &format!("csrf={csrf}&password={}", password.replace(' ', "+")))
}

#[test]
fn whoever_names_a_provider_does_not_act_as_a_member_with_a_password() {
    let (server, provider) = (server(), Provider::start());
    let api = Api::sign_in(&server);
    put(&api, &settings(&provider.issuer)).expect(200);
    let mut browser = Browser::default();
    sign_in(&server, &provider, &mut browser, &user("foreign", OWNER)).expect(303);
    browser.get(&format!("http://{}/v1/me", server.api())).expect(401);
    for _ in 0..2 {
        let refused = confirm_link(&server, &mut browser, "a guess").expect(401);
        assert!(refused.text().contains("role=\"alert\""), "{}", refused.text());
    }
    browser.get(&format!("http://{}/v1/me", server.api())).expect(401);
    // Without what the provider's answer left in this browser there is nothing to confirm.
    let away = Browser::default().get(&format!("http://{}/sign-in/link", server.api())).expect(303);
    assert_eq!(away.header("location"), Some("/sign-in"));
}

#[test]
fn a_member_is_made_at_the_first_sign_in_and_found_at_the_next() {
    let (server, provider) = (server(), Provider::start());
    let api = Api::sign_in(&server);
    let shown = put(&api, &settings(&provider.issuer)).expect(200);
    assert_eq!(shown.json()["email_domains"], json!(["example.com"]));
    assert_eq!(shown.json()["callback_url"], format!("http://{}/v1/sso/callback", server.api()));
    assert!(!shown.text().contains(SECRET));
    let mut browser = Browser::default();
    let first = sign_in(&server, &provider, &mut browser, &user("u1", "New@Example.com")).expect(201);
    let member = &first.json()["member"];
    assert_eq!((&member["email"], &member["name"]), (&json!("new@example.com"), &json!("Some One")));
    assert_eq!(member["permissions"]["repositories"][0]["actions"], json!(["read"]));
    let me = browser.get(&format!("http://{}/v1/me", server.api())).expect(200);
    assert_eq!(me.header("x-csrf-token"), Some(first.field("csrf_token").as_str()));
    // The address may change at the provider: the subject is who it is.
    let again = sign_in(&server, &provider, &mut Browser::default(), &user("u1", "renamed@example.com"));
    assert_eq!(again.expect(201).json()["member"]["id"], member["id"]);
    // The owner had an account before, and keeps it.
    let mut owner = Browser::default();
    let asked = sign_in(&server, &provider, &mut owner, &user("u2", OWNER)).expect(303);
    assert_eq!(
        asked.header("location"),
        Some("/sign-in/link"),
        "the account has a password: it is asked for"
    );
    assert_eq!(owner.cookie(server.api(), "packhouse_session"), None);
    confirm_link(&server, &mut owner, "wrong password").expect(401);
    confirm_link(&server, &mut owner, PASSWORD).expect(303);
    assert!(owner.cookie(server.api(), "packhouse_session").is_some());
    let owner = sign_in(&server, &provider, &mut Browser::default(), &user("u2", OWNER)).expect(201);
    assert_eq!(owner.json()["member"]["permissions"]["organization"][0], "manage-owner-account");
    // Somebody else who has the address by now is somebody else.
    let mut other = Browser::default();
    let answer = sign_in(&server, &provider, &mut other, &user("u3", OWNER));
    refused(&server, &other, answer, "somebody else at the provider");
    let dump = database::sqlite(&server, ".dump");
    assert!(!dump.contains(SECRET) && provider.said().iter().all(|secret| !dump.contains(secret)));
}

#[test]
fn every_lie_is_refused() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    for (twist, words) in [
        (Twist::Issuer, "another provider's"),
        (Twist::Audience, "for somebody else"),
        (Twist::OneAudienceTooMany, "for somebody else"),
        (Twist::Nonce, "another sign-in"),
        (Twist::NoNonce, "another sign-in"),
        (Twist::Expired, "has expired"),
        (Twist::NotYetValid, "not valid yet"),
        (Twist::AnAccessToken, "makes no sense"),
        (Twist::AnotherKey, "not signed by the provider"),
        (Twist::AlgorithmNone, "not signed by the provider"),
        (Twist::SignedWithTheClientsSecret, "not signed by the provider"),
        (Twist::SignatureDamaged, "not signed by the provider"),
        (Twist::Unverified, "not verified"),
        (Twist::VerifiedNotTold, "not verified"),
        (Twist::OtherDomain, "domain"),
        (Twist::NoIdToken, "makes no sense"),
        (Twist::NoSubject, "names no user"),
        (Twist::UserinfoOfAnother, "makes no sense"),
        (Twist::Nonsense, "makes no sense"),
    ] {
        provider.twist(twist);
        let mut browser = Browser::default();
        let answer = sign_in(&server, &provider, &mut browser, &user("liar", "liar@example.com"));
        println!("{twist:?}");
        refused(&server, &browser, answer, words);
    }
    let members = database::sqlite(&server, "select count(*) from members");
    assert_eq!(members.trim(), "1", "nobody was made");
    provider.twist(Twist::NoEmail);
    let told = sign_in(&server, &provider, &mut Browser::default(), &user("honest", "honest@example.com"));
    assert_eq!(told.expect(201).json()["member"]["name"], "From Userinfo");
}

#[test]
fn an_answer_counts_once_and_in_the_browser_that_asked() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    let someone = user("u1", "someone@example.com");
    let mut browser = Browser::default();
    let asked = go(&server, &mut browser, "/v1/sso/start");
    let code = provider.sign_in(&asked, &someone);
    let before = browser.clone();

    let mut stranger = Browser::default();
    let answer = come(&server, &mut stranger, &code, &asked["state"]);
    refused(&server, &stranger, answer, "began no sign-in");
    go(&server, &mut stranger, "/v1/sso/start");
    let answer = come(&server, &mut stranger, &code, &asked["state"]);
    refused(&server, &stranger, answer, "belongs to another sign-in");
    let answer = come(&server, &mut stranger, &code, "");
    refused(&server, &stranger, answer, "belongs to another sign-in");

    come(&server, &mut browser, &code, &asked["state"]).expect(201);
    // With the cookie of before, as one who copied it would: the state is used up.
    let mut replay = before;
    let answer = come(&server, &mut replay, &code, &asked["state"]);
    refused(&server, &replay, answer, "came before");
    // The code again, in a sign-in of its own: the provider knows it, and PKCE would tell it from another's.
    let mut again = Browser::default();
    let other = go(&server, &mut again, "/v1/sso/start");
    let answer = come(&server, &mut again, &code, &other["state"]);
    refused(&server, &again, answer, "does not take the code");
    // A code that nobody used yet, brought by another browser in its own sign-in.
    let mut thief = Browser::default();
    let mine = go(&server, &mut thief, "/v1/sso/start");
    let theirs = provider.sign_in(&go(&server, &mut Browser::default(), "/v1/sso/start"), &someone);
    let answer = come(&server, &mut thief, &theirs, &mine["state"]);
    refused(&server, &thief, answer, "does not take the code");
    // What is no flow of this server.
    let mut forged = Browser::default();
    forged.set(server.api(), "packhouse_sso", "v1.00000000.AAAA");
    let answer = come(&server, &mut forged, "x", "x");
    refused(&server, &forged, answer, "began no sign-in");
    let mut denied = Browser::default();
    let state = go(&server, &mut denied, "/v1/sso/start")["state"].clone();
    let url = format!("http://{}/v1/sso/callback?error=access_denied&state={state}", server.api());
    let answer = denied.get(&url);
    refused(&server, &denied, answer, "nobody signed in");
    let mut mixed = Browser::default();
    let asked = go(&server, &mut mixed, "/v1/sso/start");
    let code = provider.sign_in(&asked, &someone);
    let url = format!(
        "http://{}/v1/sso/callback?code={code}&state={}&iss=https%3A%2F%2Fother",
        server.api(),
        asked["state"]
    );
    let answer = mixed.get(&url);
    refused(&server, &mixed, answer, "another provider's");
}

#[test]
fn a_provider_may_change_its_keys() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    let someone = user("u1", "someone@example.com");
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    assert_eq!(provider.asked("/keys"), 1, "keys are kept");
    provider.rotate();
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    assert_eq!(provider.asked("/keys"), 2, "and asked for anew when one is missing");
}

#[test]
fn a_confirmation_is_a_new_sign_in_of_the_same_member() {
    let (server, provider) = (server(), Provider::start());
    let owner = Api::sign_in(&server);
    put(&owner, &settings(&provider.issuer)).expect(200);
    let (someone, other) = (user("u1", OWNER), user("u2", "other@example.com"));
    let mut browser = Browser::default();
    sign_in(&server, &provider, &mut browser, &someone).expect(303);
    confirm_link(&server, &mut browser, PASSWORD).expect(303);
    let repository = owner.create_maven("confirmed", &json!({}));
    let ask = || {
        let asked =
            owner.post("/v1/confirmations", &json!({"action": "create_token", "sso": true})).expect(202);
        let url = asked.field("sign_in_url");
        browser::split(&url).1.to_owned()
    };
    let come_as = |user: &User, twist: Twist, path: &str| {
        provider.twist(twist);
        let mut browser = Browser::default();
        let asked = go(&server, &mut browser, path);
        assert_eq!((asked["prompt"].as_str(), asked["max_age"].as_str()), ("login", "0"));
        let code = provider.sign_in(&asked, user);
        (come(&server, &mut browser, &code, &asked["state"]), browser)
    };
    for (user, twist, words) in [
        (&someone, Twist::SignedInLongAgo, "did not sign in anew"),
        (&someone, Twist::SignInTimeNotTold, "does not tell when"),
        (&other, Twist::Nothing, "no member has"),
    ] {
        let (answer, browser) = come_as(user, twist, &ask());
        refused(&server, &browser, answer, words);
    }
    provider.twist(Twist::Nothing);
    sign_in(&server, &provider, &mut Browser::default(), &other).expect(201);
    let (answer, browser) = come_as(&other, Twist::Nothing, &ask());
    refused(&server, &browser, answer, "somebody else signed in");

    let (answer, browser) = come_as(&someone, Twist::Nothing, &ask());
    let token = answer.expect(201).field("confirmation_token");
    assert_eq!(browser.cookie(server.api(), "packhouse_session"), None, "it confirms and signs nobody in");
    let create = |token: &str| {
        owner.post(
            "/v1/tokens",
            &json!({"name": "by sso", "scope": ["read"], "format": "generic",
            "repositories": [repository], "expires_at": null, "confirmation_token": token}),
        )
    };
    create(&token).expect(201);
    create(&token).expect(401);
    let (answer, _) = come_as(&someone, Twist::Nothing, &format!("{}&return_to=/portal?x=1", ask()));
    let answer = answer.expect(303);
    let (path, token) = answer.header("location").unwrap().split_once("#confirmation_token=").unwrap();
    assert_eq!(path, "/portal?x=1");
    create(token).expect(201);
    let both = json!({"action": "create_token", "sso": true, "password": PASSWORD});
    assert_eq!(owner.post("/v1/confirmations", &both).expect(400).field("error"), "invalid_request");
    let forged = Client::new(server.api()).get("/v1/sso/start?ticket=v1.00000000.AAAA").expect(404);
    assert_eq!(forged.field("error"), "not_found");
}

#[test]
fn settings_are_an_owners_and_hold_at_once() {
    let (server, provider) = (server(), Provider::start());
    let api = Api::sign_in(&server);
    let start = || Client::new(server.api()).get("/v1/sso/start");
    assert_eq!(api.call("GET", "/v1/sso").expect(404).field("error"), "not_found");
    start().expect(404);
    for (field, value) in [
        ("issuer", json!("http://10.0.0.1/")),
        ("issuer", json!("http://192.0.2.1/")),
        ("issuer", json!("http://accounts.example/")),
        ("issuer", json!("https://169.254.169.254/")),
        ("issuer", json!("file:///etc/passwd")),
        ("issuer", json!("https://u:p@accounts.example/")),
        ("issuer", json!("https://accounts.example/?x")),
        ("client_id", json!("")),
        ("client_secret", json!("a b")),
        ("email_domains", json!(["@example.com"])),
        ("email_domains", json!(["exa mple.com"])),
    ] {
        let mut body = settings(&provider.issuer);
        body[field] = value;
        let answer = put(&api, &body).expect(400);
        assert_eq!(answer.field("error"), "invalid_sso_settings", "{body}");
    }
    put(&api, &settings(&provider.issuer)).expect(200);
    start().expect(303);
    assert_eq!(
        Client::new(server.api()).get("/v1/sso/start?return_to=//evil.example").expect(400).field("error"),
        "invalid_request"
    );

    // A member who may do less neither sees nor sets them.
    let mut browser = Browser::default();
    sign_in(&server, &provider, &mut browser, &user("u1", "someone@example.com")).expect(201);
    browser.get(&format!("http://{}/v1/sso", server.api())).expect(403);

    // The secret stays while the provider does, and never goes to another.
    let mut body = settings(&provider.issuer);
    body["client_secret"] = Value::Null;
    assert_eq!(put(&api, &body).expect(200).json()["has_client_secret"], true);
    sign_in(&server, &provider, &mut Browser::default(), &user("u1", "someone@example.com")).expect(201);
    let elsewhere = Provider::start();
    body["issuer"] = json!(elsewhere.issuer);
    assert_eq!(put(&api, &body).expect(200).json()["has_client_secret"], false);

    // Passwords off: for everybody but those who could turn them on again.
    let member =
        json!({"email": "dev@example.com", "password": PASSWORD, "permissions": {"repositories": []}});
    api.post("/v1/members", &member).expect(201);
    let by_password = |email: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
        Client::new(server.api()).send(request.body(body.to_string()))
    };
    by_password("dev@example.com").expect(201);
    let mut only = settings(&provider.issuer);
    only["password_sign_in"] = json!(false);
    put(&api, &only).expect(200);
    assert_eq!(by_password("dev@example.com").expect(401).field("error"), "invalid_credentials");
    by_password(OWNER).expect(201);

    api.call("DELETE", "/v1/sso").expect(204);
    api.call("DELETE", "/v1/sso").expect(404);
    start().expect(404);
    by_password("dev@example.com").expect(201);
}

#[test]
fn a_provider_that_cannot_be_used_is_told_apart_from_a_refusal() {
    let server = server();
    let api = Api::sign_in(&server);
    let nobody = packhouse_tests::server::free_port();
    put(&api, &settings(&format!("http://127.0.0.1:{nobody}"))).expect(200);
    let answer = Client::new(server.api()).get("/v1/sso/start").expect(424);
    assert_eq!(answer.field("error"), "sso_provider_failed");

    let provider = Provider::start();
    provider.twist(Twist::DescriptionOfAnother);
    put(&api, &settings(&provider.issuer)).expect(200);
    let answer = Client::new(server.api()).get("/v1/sso/start").expect(424);
    assert!(answer.field("message").contains("another issuer"), "{}", answer.text());

    // A server that does not allow loopback asks nobody there, whatever is in its database.
    let strict = Server::start();
    let answer = put(&Api::sign_in(&strict), &settings("http://127.0.0.1:9")).expect(400);
    assert!(answer.field("message").contains("upstream.allow_networks"), "{}", answer.text());
    put(&Api::sign_in(&strict), &settings("https://localhost:9")).expect(200);
    let answer = Client::new(strict.api()).get("/v1/sso/start").expect(424);
    let message = answer.field("message");
    assert!(message.contains("localhost is not an address"), "{message}");
    assert!(!message.contains("127.0.0.1") && !message.contains("::1"), "where the name leads: {message}");
}
