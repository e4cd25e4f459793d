//! Teams, suspension and API tokens in a real browser, with scripts disabled and enabled.

use packhouse_tests::portal::{at, both, confirm, no_complaints, sign_in};
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, Client, Server};
use serde_json::json;

#[test]
fn a_team_gets_a_member_and_a_program_gets_a_token() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        api.create_maven("lib", &json!({}));
        let member = json!({"email": "m@example.com", "password": PASSWORD,
            "permissions": {"organization": [], "repositories": []}});
        api.post("/v1/members", &member).expect(201);
        let says = |words: &str| {
            let path = format!("//*[@role='status' and starts-with(normalize-space(.), '{words}')]");
            eventually(words, || browser.has(&path).then_some(()));
        };
        sign_in(browser, &server, OWNER);
        browser.follow("Teams");
        browser.comes_to("Teams - Packhouse");
        browser.fill("Name", "backend");
        browser.press("Publisher");
        // The role is filled in, and the form keeps its values.
        let filled = "//input[@name='all' and @value='publish' and @checked]";
        eventually("the role is filled in", || browser.has(filled).then_some(()));
        browser.fill("Packages", "org.example:*");
        browser.press("Create team");
        browser.comes_to("backend - Packhouse");
        browser.tick("m@example.com");
        browser.press("Add member");
        says("Added.");
        let team = api.call("GET", "/v1/teams").expect(200).json()["items"][0].clone();
        assert_eq!((&team["name"], &team["members"]), (&json!("backend"), &json!(1)));
        assert_eq!(team["permissions"]["repositories"][0]["packages"], json!(["org.example:*"]));
        browser.follow("m@example.com");
        browser.comes_to("m@example.com - Packhouse");
        browser.press("Suspend");
        says("Suspended.");
        browser.press("Reactivate");
        says("Reactivated.");
        browser.open(&at(&server, &format!("/teams/{}", team["id"].as_str().unwrap())));
        browser.press("Remove m@example.com");
        says("Removed.");

        browser.follow("Service accounts");
        browser.comes_to("Service accounts - Packhouse");
        browser.fill("Name", "inventory");
        browser.press("Create service account");
        browser.comes_to("inventory - Packhouse");
        browser.follow("Show its API tokens");
        browser.comes_to("API tokens - Packhouse");
        browser.fill("Name", "nightly");
        browser.tick("Read");
        browser.press("Create API token");
        browser.comes_to("Confirm the new API token - Packhouse");
        confirm(browser);
        browser.comes_to("API token created - Packhouse");
        let secret = browser.text("[data-secret]");
        let client = Client::new(server.api()).with("Authorization", &format!("Bearer {secret}"));
        assert_eq!(client.get("/v1/me").expect(200).field("name"), "inventory");
        no_complaints(browser);
    });
}
