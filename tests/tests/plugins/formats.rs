//! Disabling and enabling a format while servers run. A change applies at once to every server of
//! the database, and no content is lost.

use packhouse_tests::{Api, MavenRepository, Server, checkout, digests};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn maven(api: &Api) -> Value {
    let formats = api.call("GET", "/v1/formats").expect(200).json();
    let found = formats["items"].as_array().unwrap().iter().find(|format| format["format"] == "maven");
    found.unwrap_or_else(|| panic!("{formats}")).clone()
}

#[test]
fn a_format_is_switched_off_and_on_without_a_restart() {
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "switched");
    repository.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&server);
    assert_eq!(maven(&api)["enabled"], true);
    assert!(maven(&api)["limits"]["memory_bytes"].as_u64().unwrap() > 0);
    assert!(!maven(&api)["version"].as_str().unwrap().is_empty());
    // The API lists the format's plugin and its state.
    let file = std::fs::read(checkout().join("target/release/plugins/maven.wasm")).unwrap();
    assert_eq!(maven(&api)["digest"], json!(format!("sha256:{}", digests::sha256(&file))));
    let calls = || maven(&api)["calls"].as_u64().unwrap();
    let before = calls();
    assert!(before > 0, "a publish is a call");
    repository.get("org/example/a/1.0/a-1.0.pom").expect(404);
    assert!(calls() > before);
    assert_eq!(maven(&api)["failures"], 0);

    let changed = api.patch("/v1/formats/maven", &json!({"enabled": false})).expect(200).json();
    assert_eq!(changed["enabled"], false);
    for answer in [repository.get(FILE), repository.put("org/example/a/2.0/a-2.0.jar", "x")] {
        let answer = answer.expect(503);
        assert_eq!(
            (answer.field("error").as_str(), answer.header("retry-after")),
            ("format_disabled", Some("5"))
        );
    }
    // Clients without access do not learn whether the format is enabled.
    server.anonymous().get(&repository.path(FILE)).expect(401);
    server.restart();
    let api = Api::sign_in(&server);
    assert_eq!(maven(&api)["enabled"], false, "the state is stored");
    repository.get(FILE).expect(503);

    api.patch("/v1/formats/maven", &json!({"enabled": true})).expect(200);
    assert_eq!(repository.get(FILE).expect(200).text(), "hello");
    assert_eq!(
        api.patch("/v1/formats/absent", &json!({"enabled": true})).expect(404).field("error"),
        "not_found"
    );
    for wrong in [json!({}), json!({"enabled": "no"}), json!({"enabled": true, "more": 1})] {
        let answer = api.patch("/v1/formats/maven", &wrong).expect(400);
        assert_eq!(answer.field("error"), "invalid_request", "{wrong}");
    }
}
