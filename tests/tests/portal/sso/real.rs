//! Sign-in with npm's certified `oidc-provider`. The test fills in the provider's pages.

use super::browser::{Browser, query, split};
use packhouse_tests::certified::{Certified, SECRET};
use packhouse_tests::{Api, Response, Server, skip};
use serde_json::{Value, json};

/// Follows the provider's redirects and fills in its pages as this user, until a redirect leads
/// back to the server.
fn visit(
    provider: &Certified,
    browser: &mut Browser,
    mut answer: Response,
    user: &str,
    server: &Server,
) -> Response {
    for _ in 0..12 {
        let Some(location) = answer.header("location").map(str::to_owned) else {
            panic!("the provider answered {}: {}", answer.status, answer.text());
        };
        let url = if location.starts_with('/') { format!("{}{location}", provider.issuer) } else { location };
        answer = browser.get(&url);
        if split(&url).0 == server.api() {
            return answer;
        }
        if url.contains("/interaction/") && answer.status == 200 {
            let prompt = if answer.text().contains("name=\"login\"") { "login" } else { "consent" };
            answer = browser.post(&url, &format!("prompt={prompt}&login={user}&password=any"));
        }
    }
    panic!("the provider did not redirect");
}

#[test]
fn a_certified_provider_signs_members_in_and_confirms_what_they_do() {
    let server = super::server();
    let provider = match Certified::start(&server) {
        Ok(provider) => provider,
        Err(reason) => return skip("oidc-provider", &reason),
    };
    let api = Api::sign_in(&server);
    let repository = api.create_maven("certified", &json!({}));
    let settings = json!({"issuer": provider.issuer, "client_id": "packhouse", "client_secret": SECRET,
        "email_domains": ["example.com"],
        "permissions": {"repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]}});
    super::put(&api, &settings).expect(200);
    let start = format!("http://{}/v1/sso/start", server.api());

    let mut browser = Browser::default();
    let there = browser.get(&start).expect(303);
    let signed_in = visit(&provider, &mut browser, there, "dev", &server).expect(201);
    assert_eq!(signed_in.json()["member"]["email"], "dev@example.com");
    assert_eq!(signed_in.json()["member"]["name"], "Name of dev");
    let csrf = signed_in.field("csrf_token");

    // The provider has a session for this user by now, so it shows no prompt. For a confirmation it
    // must prompt again.
    let there = browser.get(&start).expect(303);
    visit(&provider, &mut browser, there, "no prompt", &server).expect(201);
    let cookie = browser.cookie(server.api(), "packhouse_session").unwrap();
    let portal =
        packhouse_tests::Client::new(server.api()).with("Cookie", &format!("packhouse_session={cookie}"));
    let csrf_now = portal.get("/v1/me").expect(200).header("x-csrf-token").unwrap().to_owned();
    assert_ne!(csrf, csrf_now, "the session is a new one");
    let post = |path: &str, body: &Value| {
        let request = packhouse_tests::Request::new("POST", path).header("X-CSRF-Token", &csrf_now);
        portal.send(request.header("Content-Type", "application/json").body(body.to_string()))
    };
    let confirmation = post("/v1/confirmations", &json!({"action": "create_token", "sso": true})).expect(202);
    let there = browser.get(&confirmation.field("sign_in_url")).expect(303);
    assert_eq!(query(there.header("location").unwrap())["prompt"], "login");
    let confirmed = visit(&provider, &mut browser, there, "dev", &server).expect(201);
    let token = json!({"name": "by sso", "scope": ["read", "write"], "format": "generic", "repositories": [repository],
        "expires_at": null, "confirmation_token": confirmed.field("confirmation_token")});
    assert_eq!(post("/v1/tokens", &token).expect(201).field("owner"), "dev@example.com");

    let mut other = Browser::default();
    let there = other.get(&start).expect(303);
    let answer = visit(&provider, &mut other, there, "unverified", &server);
    super::refused(&server, &other, answer, "not verified");
}
