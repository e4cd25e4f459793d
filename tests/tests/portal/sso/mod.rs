//! Sign-in through a provider. The provider in `provider.rs` can give every kind of wrong response.
//! The provider in `real.rs` is an independent implementation.

pub(crate) mod browser;
mod groups;
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

/// Returns settings that make every user of example.com a member who may read everything.
fn settings(issuer: &str) -> Value {
    json!({"issuer": issuer, "client_id": CLIENT, "client_secret": SECRET, "email_domains": ["Example.com"],
        "permissions": {"repositories": [{"repository": "*", "actions": ["read"]}]}})
}

/// Starts a sign-in. Returns the query of the redirect to the provider.
fn go(server: &Server, browser: &mut Browser, path: &str) -> std::collections::HashMap<String, String> {
    let there = browser.get(&format!("http://{}{path}", server.api())).expect(303);
    query(there.header("location").unwrap())
}

/// Sends the browser back from the provider, with this code and state.
fn come(server: &Server, browser: &mut Browser, code: &str, state: &str) -> Response {
    browser.get(&format!("http://{}/v1/sso/callback?code={code}&state={state}", server.api()))
}

/// Signs in through the provider as this user.
fn sign_in(server: &Server, provider: &Provider, browser: &mut Browser, user: &User) -> Response {
    let parameters = go(server, browser, "/v1/sso/start");
    let code = provider.sign_in(&parameters, user);
    come(server, browser, &code, &parameters["state"])
}

#[track_caller]
fn refused(server: &Server, browser: &Browser, answer: Response, words: &str) {
    let answer = answer.expect(401);
    assert_eq!(answer.field("error"), "sso_refused");
    assert!(answer.field("message").contains(words), "{words:?} is not in {}", answer.text());
    assert_eq!(browser.cookie(server.api(), "packhouse_session"), None);
}

/// Confirms on the page that the provider's identity belongs to the member.
#[track_caller]
fn confirm_link(server: &Server, browser: &mut Browser, password: &str) -> Response {
    let page = format!("http://{}/sign-in/link", server.api());
    let html = browser.get(&page).expect(200).text();
    let csrf = html.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    browser.post(&page, &format!("csrf={csrf}&password={}", password.replace(' ', "+")))
}

#[test]
fn configuring_a_provider_does_not_give_access_to_members_with_a_password() {
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
    // Another browser lacks the cookie of this sign-in, so it has nothing to confirm.
    let away = Browser::default().get(&format!("http://{}/sign-in/link", server.api())).expect(303);
    assert_eq!(away.header("location"), Some("/sign-in"));
}

#[test]
fn a_member_is_created_at_the_first_sign_in_and_found_at_the_next() {
    let (server, provider) = (server(), Provider::start());
    let api = Api::sign_in(&server);
    let stored = put(&api, &settings(&provider.issuer)).expect(200);
    assert_eq!(stored.json()["email_domains"], json!(["example.com"]));
    assert_eq!(stored.json()["callback_url"], format!("http://{}/v1/sso/callback", server.api()));
    assert!(!stored.text().contains(SECRET));
    let mut browser = Browser::default();
    let first = sign_in(&server, &provider, &mut browser, &user("u1", "New@Example.com")).expect(201);
    let member = &first.json()["member"];
    assert_eq!((&member["email"], &member["name"]), (&json!("new@example.com"), &json!("Some One")));
    assert_eq!(member["permissions"]["repositories"][0]["actions"], json!(["read"]));
    let me = browser.get(&format!("http://{}/v1/me", server.api())).expect(200);
    assert_eq!(me.header("x-csrf-token"), Some(first.field("csrf_token").as_str()));
    // The e-mail address at the provider may change, because the subject identifies the user.
    let again = sign_in(&server, &provider, &mut Browser::default(), &user("u1", "renamed@example.com"));
    assert_eq!(again.expect(201).json()["member"]["id"], member["id"]);
    // The owner had an account before this sign-in, and still has it.
    let mut owner = Browser::default();
    let redirect = sign_in(&server, &provider, &mut owner, &user("u2", OWNER)).expect(303);
    assert_eq!(
        redirect.header("location"),
        Some("/sign-in/link"),
        "the account has a password, so the page asks for it"
    );
    assert_eq!(owner.cookie(server.api(), "packhouse_session"), None);
    confirm_link(&server, &mut owner, "wrong password").expect(401);
    confirm_link(&server, &mut owner, PASSWORD).expect(303);
    assert!(owner.cookie(server.api(), "packhouse_session").is_some());
    let owner = sign_in(&server, &provider, &mut Browser::default(), &user("u2", OWNER)).expect(201);
    assert_eq!(owner.json()["member"]["permissions"]["organization"][0], "manage-owner-account");
    // A user with another subject but the same address is a different user.
    let mut other = Browser::default();
    let answer = sign_in(&server, &provider, &mut other, &user("u3", OWNER));
    refused(&server, &other, answer, "linked to another account at the provider");
    let dump = database::sqlite(&server, ".dump");
    assert!(!dump.contains(SECRET) && provider.issued_secrets().iter().all(|secret| !dump.contains(secret)));
}

#[test]
fn every_invalid_response_of_a_provider_is_refused() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    for (twist, words) in [
        (Twist::Issuer, "from another provider"),
        (Twist::Audience, "for another client"),
        (Twist::OneAudienceTooMany, "for another client"),
        (Twist::Nonce, "another sign-in"),
        (Twist::NoNonce, "another sign-in"),
        (Twist::Expired, "has expired"),
        (Twist::NotYetValid, "not valid yet"),
        (Twist::AnAccessToken, "is malformed"),
        (Twist::AnotherKey, "not signed by the provider"),
        (Twist::AlgorithmNone, "not signed by the provider"),
        (Twist::SignedWithTheClientsSecret, "not signed by the provider"),
        (Twist::SignatureDamaged, "not signed by the provider"),
        (Twist::Unverified, "not verified"),
        (Twist::VerifiedMissing, "not verified"),
        (Twist::OtherDomain, "domain"),
        (Twist::NoIdToken, "is malformed"),
        (Twist::NoSubject, "did not identify the user"),
        (Twist::UserinfoOfAnother, "is malformed"),
        (Twist::Nonsense, "is malformed"),
    ] {
        provider.twist(twist);
        let mut browser = Browser::default();
        let answer = sign_in(&server, &provider, &mut browser, &user("liar", "liar@example.com"));
        println!("{twist:?}");
        refused(&server, &browser, answer, words);
    }
    let members = database::sqlite(&server, "select count(*) from members");
    assert_eq!(members.trim(), "1", "no member was created");
    provider.twist(Twist::NoEmail);
    let signed_in =
        sign_in(&server, &provider, &mut Browser::default(), &user("honest", "honest@example.com"));
    assert_eq!(signed_in.expect(201).json()["member"]["name"], "From Userinfo");
}

#[test]
fn a_provider_response_works_once_and_only_in_its_browser() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    let someone = user("u1", "someone@example.com");
    let mut browser = Browser::default();
    let parameters = go(&server, &mut browser, "/v1/sso/start");
    let code = provider.sign_in(&parameters, &someone);
    let before = browser.clone();

    let mut other_browser = Browser::default();
    let answer = come(&server, &mut other_browser, &code, &parameters["state"]);
    refused(&server, &other_browser, answer, "did not start a sign-in");
    go(&server, &mut other_browser, "/v1/sso/start");
    let answer = come(&server, &mut other_browser, &code, &parameters["state"]);
    refused(&server, &other_browser, answer, "belongs to another sign-in");
    let answer = come(&server, &mut other_browser, &code, "");
    refused(&server, &other_browser, answer, "belongs to another sign-in");

    come(&server, &mut browser, &code, &parameters["state"]).expect(201);
    // A replay sends the earlier cookie, as an attacker with a copy would. The server has already
    // used the state.
    let mut replay = before;
    let answer = come(&server, &mut replay, &code, &parameters["state"]);
    refused(&server, &replay, answer, "was used already");
    // Another sign-in sends the same code. The provider knows that the code was used, and PKCE
    // would fail too.
    let mut again = Browser::default();
    let other = go(&server, &mut again, "/v1/sso/start");
    let answer = come(&server, &mut again, &code, &other["state"]);
    refused(&server, &again, answer, "refused the code");
    // Another browser sends an unused code in its own sign-in.
    let mut thief = Browser::default();
    let mine = go(&server, &mut thief, "/v1/sso/start");
    let theirs = provider.sign_in(&go(&server, &mut Browser::default(), "/v1/sso/start"), &someone);
    let answer = come(&server, &mut thief, &theirs, &mine["state"]);
    refused(&server, &thief, answer, "refused the code");
    // The server did not issue this state.
    let mut forged = Browser::default();
    forged.set(server.api(), "packhouse_sso", "v1.00000000.AAAA");
    let answer = come(&server, &mut forged, "x", "x");
    refused(&server, &forged, answer, "did not start a sign-in");
    let mut denied = Browser::default();
    let state = go(&server, &mut denied, "/v1/sso/start")["state"].clone();
    let url = format!("http://{}/v1/sso/callback?error=access_denied&state={state}", server.api());
    let answer = denied.get(&url);
    refused(&server, &denied, answer, "reports that the user did not sign in");
    let mut mixed = Browser::default();
    let parameters = go(&server, &mut mixed, "/v1/sso/start");
    let code = provider.sign_in(&parameters, &someone);
    let url = format!(
        "http://{}/v1/sso/callback?code={code}&state={}&iss=https%3A%2F%2Fother",
        server.api(),
        parameters["state"]
    );
    let answer = mixed.get(&url);
    refused(&server, &mixed, answer, "from another provider");
}

#[test]
fn a_provider_may_change_its_keys() {
    let (server, provider) = (server(), Provider::start());
    put(&Api::sign_in(&server), &settings(&provider.issuer)).expect(200);
    let someone = user("u1", "someone@example.com");
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    assert_eq!(provider.requests("/keys"), 1, "keys are cached");
    provider.rotate();
    sign_in(&server, &provider, &mut Browser::default(), &someone).expect(201);
    assert_eq!(provider.requests("/keys"), 2, "keys are requested again when one is missing");
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
        let confirmation =
            owner.post("/v1/confirmations", &json!({"action": "create_token", "sso": true})).expect(202);
        let url = confirmation.field("sign_in_url");
        browser::split(&url).1.to_owned()
    };
    let come_as = |user: &User, twist: Twist, path: &str| {
        provider.twist(twist);
        let mut browser = Browser::default();
        let parameters = go(&server, &mut browser, path);
        assert_eq!((parameters["prompt"].as_str(), parameters["max_age"].as_str()), ("login", "0"));
        let code = provider.sign_in(&parameters, user);
        (come(&server, &mut browser, &code, &parameters["state"]), browser)
    };
    for (user, twist, words) in [
        (&someone, Twist::SignedInLongAgo, "did not sign in again"),
        (&someone, Twist::SignInTimeMissing, "did not send the time"),
        (&other, Twist::Nothing, "no member has"),
    ] {
        let (answer, browser) = come_as(user, twist, &ask());
        refused(&server, &browser, answer, words);
    }
    provider.twist(Twist::Nothing);
    sign_in(&server, &provider, &mut Browser::default(), &other).expect(201);
    let (answer, browser) = come_as(&other, Twist::Nothing, &ask());
    refused(&server, &browser, answer, "another member signed in");

    let (answer, browser) = come_as(&someone, Twist::Nothing, &ask());
    let token = answer.expect(201).field("confirmation_token");
    assert_eq!(
        browser.cookie(server.api(), "packhouse_session"),
        None,
        "the provider only confirms, so no session begins"
    );
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
fn only_owners_change_settings_which_apply_at_once() {
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

    // A member with fewer rights can neither read nor change the settings.
    let mut browser = Browser::default();
    sign_in(&server, &provider, &mut browser, &user("u1", "someone@example.com")).expect(201);
    browser.get(&format!("http://{}/v1/sso", server.api())).expect(403);

    // The server reuses the stored secret only for the same provider. It never sends the secret to
    // another provider.
    let mut body = settings(&provider.issuer);
    body["client_secret"] = Value::Null;
    assert_eq!(put(&api, &body).expect(200).json()["has_client_secret"], true);
    sign_in(&server, &provider, &mut Browser::default(), &user("u1", "someone@example.com")).expect(201);
    let elsewhere = Provider::start();
    body["issuer"] = json!(elsewhere.issuer);
    assert_eq!(put(&api, &body).expect(200).json()["has_client_secret"], false);

    // The server refuses passwords, except for members who could enable passwords again.
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
fn an_unusable_provider_is_distinguished_from_a_refusal() {
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

    // The server does not allow loopback, so it never connects there, whatever the database
    // contains.
    let strict = Server::start();
    let answer = put(&Api::sign_in(&strict), &settings("http://127.0.0.1:9")).expect(400);
    assert!(answer.field("message").contains("upstream.allow_networks"), "{}", answer.text());
    put(&Api::sign_in(&strict), &settings("https://localhost:9")).expect(200);
    let answer = Client::new(strict.api()).get("/v1/sso/start").expect(424);
    let message = answer.field("message");
    assert!(message.contains("localhost is not an address"), "{message}");
    assert!(
        !message.contains("127.0.0.1") && !message.contains("::1"),
        "the message contains the resolved address: {message}"
    );
}
