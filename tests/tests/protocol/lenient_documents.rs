//! One upstream's odd document takes nothing from what the others have, and a checksum that nobody may see takes no file away.

use packhouse_tests::Server;
use packhouse_tests::http::{Request, Response};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::json;

const METADATA: &str = "org/a/lib/maven-metadata.xml";
const JAR: &str = "org/a/lib/1.0/lib-1.0.jar";

/// Two proxies of a format with an upstream each, and a group of both.
struct World {
    _server: Server,
    upstreams: [Upstream; 2],
    proxies: [FormatRepository; 2],
    group: FormatRepository,
}

impl World {
    fn new(format: &str, settings: &serde_json::Value) -> Self {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let upstreams = [Upstream::start(), Upstream::start()];
        let proxy = |name: &str, upstream: &Upstream| {
            FormatRepository::proxy(&server, format, name, &upstream.url(), settings)
        };
        let proxies = [proxy("one", &upstreams[0]), proxy("two", &upstreams[1])];
        let group = FormatRepository::group(&server, format, "all", &[&proxies[0], &proxies[1]]);
        Self { _server: server, upstreams, proxies, group }
    }
}

fn get(repository: &FormatRepository, path: &str) -> Response {
    let request = Request::new("GET", &format!("/repositories/{}/{path}", repository.name));
    repository.client.send(request.header("Accept", &format!("{SIMPLE_JSON}, */*; q=0.1")))
}

fn metadata(versions: &[&str]) -> String {
    let versions: String = versions.iter().map(|version| format!("<version>{version}</version>")).collect();
    format!("<metadata><versioning><versions>{versions}</versions></versioning></metadata>")
}

#[test]
fn metadata_of_maven_that_cannot_be_read_are_left_out_of_a_group() {
    let odd: [&[u8]; 3] = [b"", b"<html><body>Sign in</body></html>", b"<metadata><versioning>"];
    for bytes in odd {
        let world = World::new("maven", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
        world.upstreams[0].on(&format!("/{METADATA}"), Answer::ok(bytes).header("Content-Type", "text/xml"));
        get(&world.proxies[0], METADATA).expect(502);
        get(&world.group, METADATA).expect(502);
        world.upstreams[1].on(&format!("/{METADATA}"), Answer::ok(metadata(&["1.0"])));
        let text = get(&world.group, METADATA).expect(200).text();
        assert!(text.contains("<version>1.0</version>"), "{text}");
    }
}

#[test]
fn metadata_that_mavens_own_reader_takes_are_merged() {
    let world = World::new("maven", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    world.upstreams[1].on(&format!("/{METADATA}"), Answer::ok(metadata(&["1.0"])));
    let latin1 = b"<?xml version='1.0' encoding='ISO-8859-1'?><!-- \xe9 -->".to_vec();
    for before in [latin1, b"<!DOCTYPE metadata>".to_vec()] {
        let bytes = [before, metadata(&["2.0", "${project.version}", "3/4"]).into_bytes()].concat();
        world.upstreams[0].on(&format!("/{METADATA}"), Answer::ok(bytes));
        let text = get(&world.group, METADATA).expect(200).text();
        assert!(text.contains("<version>1.0</version>") && text.contains("<version>2.0</version>"), "{text}");
        assert!(!text.contains("${") && !text.contains("3/4"), "{text}");
    }
}

#[test]
fn a_page_of_python_that_cannot_be_read_is_left_out_of_a_group() {
    let world = World::new("python", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let page = |answer: &str| Answer::ok(answer).header("Content-Type", SIMPLE_JSON);
    world.upstreams[0].on("/simple/demo/", page(r#"{"files": [{"filename": "demo-1.0"#));
    get(&world.proxies[0], "simple/demo/").expect(502);
    get(&world.group, "simple/demo/").expect(502);
    let file = r#"{"files": [{"filename": "demo-1.0.tar.bz2", "url": "/demo-1.0.tar.bz2"}]}"#;
    world.upstreams[1].on("/simple/demo/", page(file));
    world.upstreams[1].on("/demo-1.0.tar.bz2", Answer::ok("bytes"));
    let listed = get(&world.group, "simple/demo/").expect(200).json();
    assert_eq!(listed["files"][0]["filename"], "demo-1.0.tar.bz2");
    assert_eq!(get(&world.group, "packages/demo/1.0/demo-1.0.tar.bz2").expect(200).text(), "bytes");
}

#[test]
fn a_file_whose_checksum_nobody_may_see_is_served() {
    let world = World::new("maven", &json!({}));
    world.upstreams[0].on(&format!("/{JAR}"), Answer::ok("a jar"));
    for ending in ["sha1", "sha256", "md5"] {
        world.upstreams[0].on(&format!("/{JAR}.{ending}"), Answer::new(403, ""));
    }
    assert_eq!(get(&world.proxies[0], JAR).expect(200).text(), "a jar");
    assert_eq!(get(&world.group, JAR).expect(200).text(), "a jar");
}

#[test]
fn a_file_with_a_wrong_checksum_is_served_where_the_setting_says_so() {
    let wrong = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    for policy in ["warn", "ignore"] {
        let world = World::new("maven", &json!({"checksum_policy": policy}));
        world.upstreams[0].on(&format!("/{JAR}"), Answer::ok("a jar"));
        world.upstreams[0].on(&format!("/{JAR}.sha1"), Answer::ok(wrong));
        assert_eq!(get(&world.proxies[0], JAR).expect(200).text(), "a jar", "{policy}");
    }
}

#[test]
fn a_catalogue_of_archetypes_is_that_of_all_members_and_changes() {
    let world = World::new("maven", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let catalogue = |artifact: &str| {
        format!(
            "<archetype-catalog><archetypes><archetype><groupId>g</groupId><artifactId>{artifact}</artifactId>\
             <version>1</version></archetype></archetypes></archetype-catalog>"
        )
    };
    for (upstream, artifact) in world.upstreams.iter().zip(["a", "b"]) {
        upstream.on("/archetype-catalog.xml", Answer::ok(catalogue(artifact)));
    }
    let text = get(&world.group, "archetype-catalog.xml").expect(200).text();
    assert!(
        text.contains("<artifactId>a</artifactId>") && text.contains("<artifactId>b</artifactId>"),
        "{text}"
    );
    world.upstreams[0].on("/archetype-catalog.xml", Answer::ok(catalogue("c")));
    let text = get(&world.proxies[0], "archetype-catalog.xml").expect(200).text();
    assert!(text.contains("<artifactId>c</artifactId>"), "{text}");
}
