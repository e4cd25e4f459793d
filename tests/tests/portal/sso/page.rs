//! The sign-in page for package clients. A member without a password signs in and confirms through
//! the provider.

use super::browser::Browser;
use super::provider::{Provider, Twist};
use super::{come, put, server, settings, user};
use packhouse_tests::{Api, Request};
use serde_json::json;

/// Returns the page's link to the provider, as a path of the host.
fn link(text: &str) -> String {
    let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let found = links
        .into_iter()
        .find_map(|address| address.find("/v1/sso/start?").map(|at| address[at..].to_owned()));
    found.unwrap_or_else(|| panic!("no link in {text}")).replace("&amp;", "&")
}

#[test]
fn a_member_without_a_password_finishes_a_clients_sign_in() {
    let (server, provider) = (server(), Provider::start());
    let owner = Api::sign_in(&server);
    put(&owner, &settings(&provider.issuer)).expect(200);
    let body = json!({"name": "js", "format": "npm", "kind": "hosted"});
    owner.post("/v1/repositories", &body).expect(201);
    let begin =
        Request::new("POST", "/repositories/js/-/v1/login").header("Content-Type", "application/json");
    let begun = server.anonymous().send(begin.body("{}")).expect(200);
    let (page, done) = (begun.field("loginUrl"), begun.field("doneUrl"));
    let path = super::browser::split(&page).1;
    let mut browser = Browser::default();
    let visit = |browser: &mut Browser, start: &str, subject: &str| {
        let parameters = super::go(&server, browser, start);
        let code = provider.sign_in(&parameters, &user(subject, &format!("{subject}@example.com")));
        come(&server, browser, &code, &parameters["state"])
    };

    let away = browser.get(&page).expect(303);
    let answer = browser.get(&format!("http://{}{}", server.api(), away.header("location").unwrap()));
    let answer = answer.expect(200).text();
    let back = visit(&mut browser, &link(&answer), "dev").expect(303);
    assert_eq!(back.header("location"), Some(path));
    let confirmation = browser.get(&page).expect(200).text();
    assert!(
        confirmation.contains("dev@example.com") && !confirmation.contains("type=\"password\""),
        "{confirmation}"
    );

    // Neither another user of the provider can confirm, nor a user who did not sign in again.
    visit(&mut browser, &link(&confirmation), "other").expect(401);
    provider.twist(Twist::SignedInLongAgo);
    visit(&mut browser, &link(&confirmation), "dev").expect(401);
    provider.twist(Twist::Nothing);
    assert_eq!(browser.cookie(server.api(), "packhouse_confirmation"), None);

    let back = visit(&mut browser, &link(&confirmation), "dev").expect(303);
    assert_eq!(back.header("location"), Some(path), "the confirmation is not in a URL");
    let confirmed = browser.get(&page).expect(200).text();
    let csrf = confirmed.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    browser.post(&page, "csrf=forged&days=7").expect(403);
    let finished = browser.post(&page, &format!("csrf={csrf}&days=7")).expect(200).text();
    assert!(finished.contains("role=\"status\""), "{finished}");
    assert_eq!(browser.cookie(server.api(), "packhouse_confirmation"), None, "the confirmation is used up");
    let token = server.anonymous().get(super::browser::split(&done).1).expect(200).field("token");
    let bearer = server.anonymous().with("Authorization", &format!("Bearer {token}"));
    assert_eq!(bearer.get("/repositories/js/-/whoami").expect(200).field("username"), "dev@example.com");
}
