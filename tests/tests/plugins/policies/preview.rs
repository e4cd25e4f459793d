//! What policies cost: a preview over 10,000 versions takes seconds, an answer that is kept costs nothing, and a publish reads what is asked for.

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
        let shown = preview(&api, &id);
        let took = began.elapsed();
        println!("{component}: 10,000 versions in {took:?}");
        assert_eq!((&shown["versions"], &shown["denied"]), (&json!(10_000), &json!(denied)), "{component}");
        assert_eq!(shown["items"].as_array().unwrap().len(), 1_000);
        assert_eq!(shown["truncated"], true);
        assert!(took < Duration::from_secs(10), "{component} took {took:?}");
        remove(&api, &id);
    }
}

/// How often policies were called since the server started.
fn calls(api: &Api) -> u64 {
    let listed = api.call("GET", "/v1/policy-components").expect(200).json();
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|one| one["calls"].as_u64().unwrap()).sum()
}

#[test]
fn a_kept_answer_asks_no_policy() {
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
    assert_eq!(calls(&api), 0, "where no rule holds, nothing is asked");
    enforced(&api, "names", json!({"claimed": ["other:*"]}), json!([proxy.id]));
    get();
    let after_first = calls(&api);
    assert!(after_first > 0);
    for _ in 0..20 {
        get();
    }
    assert_eq!(calls(&api), after_first, "what is kept was judged");
}

/// Statements that ten publishes take, at the least of three rounds: what the server does meanwhile on its own account is not theirs.
fn statements_of_publishes(server: &Server, maven: &MavenRepository, name: &str) -> u64 {
    let counted = || {
        let text = Client::new(server.api()).get("/metrics").expect(200).text();
        let line = text.lines().find(|line| line.starts_with("packhouse_store_statements_total"));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
    };
    let put = |version: String| {
        maven.put(&format!("org/example/{name}/{version}/{name}-{version}.jar"), "x").expect(201);
    };
    // What is read once and kept.
    put("0".to_owned());
    let round = |round: u32| {
        let before = counted();
        (0..10).for_each(|version| put(format!("{round}.{version}")));
        counted() - before
    };
    (1..=3).map(round).min().unwrap()
}

#[test]
fn a_publish_reads_nothing_that_no_rule_looks_at() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let publishes = |name: &str| statements_of_publishes(&server, &maven, name);
    let without = publishes("without");
    let id = enforced(&api, "names", json!({"publish": ["org.example:*"]}), json!("*"));
    assert_eq!(publishes("names"), without, "names alone decide");
    remove(&api, &id);
    // Of what is excepted, and of what no rule is about, nothing is read either.
    let id = enforced(&api, "provenance", json!({}), json!("*"));
    except(&api, &id, "org.example:excepted");
    assert_eq!(publishes("excepted"), without);
    remove(&api, &id);
    let id = enforced(&api, "provenance", json!({"except": ["org.example:*"]}), json!("*"));
    let signed = publishes("signed");
    assert!(signed >= without + 10, "what is signed of each is looked for: {signed}, and {without} without");
    remove(&api, &id);
}
