//! Misbehaving policy components. Each fails only its own request, the server lets nothing pass
//! unjudged, and the failure is visible.

use std::time::{Duration, Instant};

use packhouse_tests::{Api, MavenRepository, Request, Response, Server, checkout};
use serde_json::{Value, json};

use super::{POLICIES, denied, enforced, mode, paused, preview, remove};

pub(crate) fn install(api: &Api, bytes: Vec<u8>) -> Response {
    let request = Request::new("POST", "/v1/policy-components").header("Content-Type", "application/wasm");
    api.client().send(request.body(bytes))
}

pub(crate) fn outlaw(api: &Api) -> String {
    let file = checkout().join("target/release/guests/outlaw.wasm");
    let made = install(api, std::fs::read(file).expect("`xtask guests` made it")).expect(201).json();
    assert_eq!((&made["name"], &made["error"]), (&json!("outlaw"), &Value::Null));
    made["component"].as_str().unwrap().to_owned()
}

#[test]
fn a_failing_component_refuses_its_request() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let component = outlaw(&api);
    let (jars, free) = (MavenRepository::create(&server, "jars"), MavenRepository::create(&server, "free"));
    let put = |maven: &MavenRepository, version: &str| {
        maven.put(&format!("org/example/a/{version}/a-{version}.jar"), version)
    };
    put(&jars, "0").expect(201);
    for (number, (does, failure)) in
        [("slow", "took longer"), ("trap", "trapped"), ("grow", "memory"), ("huge", "passed more")]
            .into_iter()
            .enumerate()
    {
        let id = paused(&api, &component, json!({"does": does}), json!([jars.id]));
        let previewed = preview(&api, &id);
        assert_eq!(
            previewed["unavailable"], previewed["versions"],
            "{does}: the preview reports the failures: {previewed}"
        );
        assert_eq!(previewed["items"][0]["ruling"], "policy_unavailable");
        mode(&api, &id, "enforced");
        let began = Instant::now();
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| put(&free, &number.to_string()));
            denied(&put(&jars, "1"), "failed to judge");
            beside.join().unwrap().expect(201);
        });
        assert!(began.elapsed() < Duration::from_secs(10), "{does} took {:?}", began.elapsed());
        jars.get("org/example/a/1/a-1.jar").expect(404);
        jars.get("org/example/a/0/a-0.jar").expect(200);
        let failed = api.call("GET", &format!("{POLICIES}/{id}")).expect(200).json();
        let error = failed["failure"]["error"].as_str().unwrap_or_default();
        assert!(error.contains(failure), "{does}: {failed}");
        assert!(failed["failure"]["times"].as_u64().unwrap() >= 1, "{failed}");
        // A failing policy in warn mode refuses nothing.
        mode(&api, &id, "warn");
        put(&jars, &format!("1{number}")).expect(201);
        remove(&api, &id);
    }
    let components = api.call("GET", "/v1/policy-components").expect(200).json();
    let listed =
        components["items"].as_array().unwrap().iter().find(|one| one["component"] == component.as_str());
    assert!(listed.unwrap()["failures"].as_u64().unwrap() >= 8, "{components}");
    let metrics = server_metrics(&api);
    for line in [
        "packhouse_policy_rulings_total{ruling=\"unavailable\"}",
        "packhouse_plugin_calls_total{plugin=\"policy/outlaw\",function=\"judge\",outcome=\"deadline\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in the metrics");
    }
    assert!(server.log().contains("policy/outlaw"));
}

fn server_metrics(api: &Api) -> String {
    api.call("GET", "/metrics").expect(200).text()
}

#[test]
fn the_reason_of_a_component_becomes_one_line() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let component = outlaw(&api);
    let jars = MavenRepository::create(&server, "jars");
    enforced(&api, &component, json!({"does": "lines"}), json!("*"));
    let answer = jars.put("org/example/a/1/a-1.jar", "a");
    denied(&answer, "one  Set-Cookie: two");
    assert_eq!(answer.header("set-cookie"), None);
}

#[test]
fn a_file_that_is_not_a_policy_is_refused_and_a_used_policy_stays() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for (bytes, why) in [
        (b"no wasm".to_vec(), "is not a WebAssembly component"),
        (b"\0asm\x01\0\0\0".to_vec(), "is a core module"),
        (
            std::fs::read(checkout().join("target/release/plugins/generic.wasm")).unwrap(),
            "a policy must not import anything",
        ),
    ] {
        let refused = install(&api, bytes).expect(422);
        assert!(
            refused.text().contains("plugin_refused") && refused.text().contains(why),
            "{}",
            refused.text()
        );
    }
    let component = outlaw(&api);
    let path = format!("/v1/policy-components/{component}");
    assert_eq!(outlaw(&api), component, "installing again gives the same component");
    let id = paused(&api, &component, json!({"does": "deny"}), json!("*"));
    let refused = api.call("DELETE", &path).expect(409);
    assert_eq!(refused.field("error"), "policy_in_use");
    remove(&api, &id);
    api.call("DELETE", &path).expect(204);
    api.call("DELETE", &path).expect(404);
}

#[test]
fn the_number_of_components_is_limited() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let file = checkout().join("target/release/plugins/policies/least-age.wasm");
    let bytes = std::fs::read(file).expect("`xtask plugins` made it");
    // An additional section, which nothing reads, changes the digest.
    let another = |number: u8| [&bytes[..], &[0, 3, 1, b'x', number]].concat();
    for number in 0..30 {
        install(&api, another(number)).expect(201);
    }
    let refused = install(&api, another(30)).expect(409);
    assert_eq!(refused.field("error"), "too_many_policy_components");
    install(&api, another(0)).expect(201);
}

#[test]
fn an_installed_component_outlives_a_restart() {
    let mut server = Server::start();
    let api = Api::sign_in(&server);
    let component = outlaw(&api);
    let jars = MavenRepository::create(&server, "jars");
    enforced(&api, &component, json!({"does": "deny"}), json!("*"));
    server.kill9();
    server.restart();
    let client = server.anonymous().basic(packhouse_tests::server::OWNER, &jars.token.secret);
    let answer = client.put("/repositories/jars/org/example/a/1/a-1.jar", "a");
    denied(&answer, "org.example:a 1 is not wanted");
}
