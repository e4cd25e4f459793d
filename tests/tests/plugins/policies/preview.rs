//! Costs of policies. A preview over 10,000 versions takes seconds, a cached response causes no
//! policy call, and a publish reads only the facts that its policies request.

use std::time::{Duration, Instant};

use packhouse_tests::{Api, Client, MavenRepository, Server};
use serde_json::json;

use super::{enforced, except, paused, preview, remove};

const PACKAGES: usize = 100;
const VERSIONS: usize = 100;
const CLIENTS: usize = 32;

#[test]
fn ten_thousand_versions_are_previewed_in_seconds() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let maven = &maven;
            scope.spawn(move || {
                for package in (client..PACKAGES).step_by(CLIENTS) {
                    for version in 0..VERSIONS {
                        let path = format!("org/example/p{package}/{version}/p{package}-{version}.jar");
                        maven.put(&path, "x").expect(201);
                    }
                }
            });
        }
    });
    for (component, settings, denied) in [
        ("names", json!({"publish": ["org.example:p1*"]}), 8_900),
        ("licences", json!({"allow": ["MIT"], "unknown": "deny"}), 10_000),
        ("provenance", json!({}), 10_000),
        ("least-age", json!({"hours": 24, "hosted": true}), 0),
    ] {
        let id = paused(&api, component, settings, json!([maven.id]));
        let began = Instant::now();
        let previewed = preview(&api, &id);
        let took = began.elapsed();
        println!("{component}: 10,000 versions in {took:?}");
        assert_eq!(
            (&previewed["versions"], &previewed["denied"]),
            (&json!(10_000), &json!(denied)),
            "{component}"
        );
        assert_eq!(previewed["items"].as_array().unwrap().len(), 1_000);
        assert_eq!(previewed["truncated"], true);
        assert!(took < Duration::from_secs(10), "{component} took {took:?}");
        remove(&api, &id);
    }
}

/// Returns the number of policy calls since the server started.
fn calls(api: &Api) -> u64 {
    let listed = api.call("GET", "/v1/policy-components").expect(200).json();
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|one| one["calls"].as_u64().unwrap()).sum()
}

#[test]
fn a_cached_response_calls_no_policy() {
    let upstream = Server::start();
    let far = MavenRepository::create_with(&upstream, "jars", &json!({"public": true}));
    far.put("org/example/a/1/a-1.jar", "a").expect(201);
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&near);
    let url = format!("{}/repositories/jars/", upstream.base_url());
    let proxy =
        packhouse_tests::repository::FormatRepository::proxy(&near, "maven", "jars", &url, &json!({}));
    let get = || proxy.get("org/example/a/1/a-1.jar").expect(200);
    get();
    assert_eq!(calls(&api), 0, "without a rule no policy is called");
    enforced(&api, "names", json!({"claimed": ["other:*"]}), json!([proxy.id]));
    get();
    let after_first = calls(&api);
    assert!(after_first > 0);
    for _ in 0..20 {
        get();
    }
    assert_eq!(calls(&api), after_first, "a cached response needs no policy call");
}

/// Returns the number of database statements of ten publishes. This is the minimum of three rounds,
/// because background work of the server also runs statements.
fn statements_of_publishes(server: &Server, maven: &MavenRepository, name: &str) -> u64 {
    let counted = || {
        let text = Client::new(server.api()).get("/metrics").expect(200).text();
        let line = text.lines().find(|line| line.starts_with("packhouse_store_statements_total"));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
    };
    let put = |version: String| {
        maven.put(&format!("org/example/{name}/{version}/{name}-{version}.jar"), "x").expect(201);
    };
    // After the first publish, some values are in the server's cache and are not read again.
    put("0".to_owned());
    let round = |round: u32| {
        let before = counted();
        (0..10).for_each(|version| put(format!("{round}.{version}")));
        counted() - before
    };
    (1..=3).map(round).min().unwrap()
}

#[test]
fn a_publish_reads_only_facts_that_a_rule_uses() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let publishes = |name: &str| statements_of_publishes(&server, &maven, name);
    let without = publishes("without");
    let id = enforced(&api, "names", json!({"publish": ["org.example:*"]}), json!("*"));
    assert_eq!(publishes("names"), without, "only names decide");
    remove(&api, &id);
    // A package with an exception causes no reads either.
    let id = enforced(&api, "provenance", json!({}), json!("*"));
    except(&api, &id, "org.example:excepted");
    assert_eq!(publishes("excepted"), without);
    remove(&api, &id);
    let id = enforced(&api, "provenance", json!({"except": ["org.example:*"]}), json!("*"));
    let signed = publishes("signed");
    assert!(
        signed >= without + 10,
        "each publish reads attestations: {signed} statements, {without} without the policy"
    );
    remove(&api, &id);
}
