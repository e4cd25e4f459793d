//! A candidate component beside an enforced one. The candidate belongs to a second rule that only
//! warns. Both components judge the same publish, and only the enforced one can refuse it. The
//! candidate's verdict is in the log, in the metrics and in its recordings.

use packhouse_tests::server::eventually;
use packhouse_tests::{Api, MavenRepository, Server, checkout};
use serde_json::json;

use super::hostile::install;
use super::{POLICIES, denied, enforced, mode, preview};

#[test]
fn a_candidate_judges_beside_a_rule_and_refuses_nothing() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let jars = MavenRepository::create(&server, "jars");
    let put = |version: &str| jars.put(&format!("org/example/a/{version}/a-{version}.jar"), version);
    let file = checkout().join("target/release/plugins/policies/names.wasm");
    let bytes = std::fs::read(file).expect("`xtask plugins` made it");
    // An additional section, which nothing reads, changes the digest.
    let candidate = install(&api, [&bytes[..], &[0, 3, 1, b'x', 1]].concat()).expect(201).field("component");
    let active = enforced(&api, "names", json!({"publish": ["org.example:*"]}), json!("*"));
    let body = json!({
        "name": "next", "component": candidate, "settings": {"publish": ["acme:*"]}, "repositories": "*",
    });
    let next = api.post(POLICIES, &body).expect(201).field("id");
    mode(&api, &next, "warn");
    api.post(&format!("{POLICIES}/{next}/recordings"), &json!({"count": 5})).expect(201);
    // A publish that only the candidate refuses succeeds. The server records the candidate's
    // verdict.
    put("1").expect(201);
    eventually("the verdict is in the log", || server.log().contains("policy warning: ").then_some(()));
    let recorded = eventually("the verdict is recorded", || {
        let listed = api.call("GET", &format!("{POLICIES}/{next}/recordings")).expect(200).json();
        listed["items"].as_array().unwrap().first().cloned()
    });
    assert_eq!((&recorded["outcome"], &recorded["component"]), (&json!("deny"), &json!(candidate)));
    assert!(api.call("GET", "/metrics").expect(200).text().contains("ruling=\"warn\"} 1"));
    // If both components refuse a publish, the client gets the refusal of the enforced one.
    let other = || jars.put("com/other/b/1/b-1.jar", "b");
    denied(&other(), "may not be published here");
    // The candidate's rule needs a preview of its current version before an operator enforces it.
    preview(&api, &next);
    mode(&api, &next, "enforced");
    mode(&api, &active, "paused");
    let refused = put("2").expect(403).text();
    assert!(refused.contains("(policy next)"), "{refused}");
}
