//! `npm audit` tells an upstream no name that is hosted or claimed.

use super::World;
use super::formats::{document, publish_npm};
use packhouse_tests::upstream::Answer;
use packhouse_tests::{Request, Response};
use serde_json::{Value, json};
use std::io::Write as _;

const BULK: &str = "/-/npm/v1/security/advisories/bulk";
const QUICK: &str = "/-/npm/v1/security/audits/quick";

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// A world with `@acme/own` hosted, `grouped` claimed by the group and `apart` by the proxy.
fn world() -> World {
    let world = World::with("npm", &json!({"claimed_names": ["grouped"]}));
    publish_npm(&world, "@acme/own");
    world.set(&world.proxy, &json!({"claimed_names": ["apart"]}));
    world.upstream.on(BULK, Answer::ok(r#"{"lib": [{"id": 7}]}"#));
    world.upstream.on(QUICK, Answer::ok(r#"{"advisories": {"7": {}}}"#));
    world
}

#[track_caller]
fn ask(client: &packhouse_tests::Client, address: &str, below: &str, body: &Value, packed: bool) -> Response {
    let request = Request::new("POST", &format!("/repositories/{address}{below}"))
        .header("Content-Type", "application/json");
    let text = body.to_string();
    client.send(match packed {
        true => request.header("Content-Encoding", "gzip").body(gzip(&text)),
        false => request.body(text),
    })
}

/// The body that the upstream was sent last.
fn told(world: &World) -> Value {
    let seen = world.upstream.seen();
    let last = seen.last().unwrap();
    assert_eq!(last.header("content-encoding"), None);
    document(&last.body)
}

#[test]
fn advisories_are_asked_for_without_names_of_ours() {
    let world = world();
    let question =
        json!({"@acme/own": ["1.0.0"], "grouped": ["1.0.0"], "apart": ["1.0.0"], "lib": ["1.0.0"]});
    // A proxy that is asked itself keeps what its groups keep.
    for address in ["all", "elsewhere"] {
        for (who, client) in world.strangers() {
            for packed in [true, false] {
                let answer = ask(&client, address, BULK, &question, packed).expect(200);
                assert_eq!(document(&answer.body), json!({"lib": [{"id": 7}]}), "{who} {address}");
                assert_eq!(told(&world), json!({"lib": ["1.0.0"]}), "{who} {address}");
            }
        }
    }
    let before = world.upstream.seen().len();
    for address in ["all", "elsewhere"] {
        let ours = json!({"@acme/own": ["1.0.0"]});
        let answer = ask(&world.server.anonymous(), address, BULK, &ours, true).expect(200);
        assert_eq!(document(&answer.body), json!({}));
    }
    assert_eq!(world.upstream.seen().len(), before, "of what is ours alone nobody hears");
    // What names nothing of ours is passed on as it came.
    let packed = gzip(&json!({"lib": ["1.0.0"]}).to_string());
    let request = Request::new("POST", &format!("/repositories/all{BULK}"))
        .header("Content-Type", "application/json")
        .header("Content-Encoding", "gzip")
        .body(packed.clone());
    world.server.anonymous().send(request).expect(200);
    let last = world.upstream.seen().pop().unwrap();
    assert_eq!((last.header("content-encoding"), &last.body), (Some("gzip"), &packed));
}

#[test]
fn older_clients_send_a_tree_and_names_of_ours_are_taken_out_of_it() {
    let world = world();
    let question = json!({
        "name": "@acme/own", "version": "1.0.0", "install": [], "remove": [], "metadata": {"node_version": "v24"},
        "requires": {"lib": "^1.0.0", "apart": "1"},
        "dependencies": {
            "apart": {"version": "1.0.0"},
            "lib": {"version": "1.0.0", "resolved": "https://packages.example/@acme/own", "requires": {"grouped": "1"},
                "dependencies": {"grouped": {"version": "1.0.0"}, "deep": {"version": "2.0.0"}}},
        },
    });
    for address in ["all", "elsewhere"] {
        ask(&world.server.anonymous(), address, QUICK, &question, true).expect(200);
        let told = told(&world);
        assert_eq!(
            told["dependencies"],
            json!({"lib": {"version": "1.0.0", "requires": {},
            "dependencies": {"deep": {"version": "2.0.0"}}}}),
            "{address}"
        );
        assert_eq!(told["requires"], json!({"lib": "^1.0.0"}));
        for name in ["@acme/own", "grouped", "apart"] {
            assert!(!told.to_string().contains(name), "{address}: {name}: {told}");
        }
    }
}

#[test]
fn a_question_that_cannot_be_read_is_told_to_nobody() {
    let world = world();
    let send = |encoding: &str, body: &[u8]| {
        let request = Request::new("POST", &format!("/repositories/all{BULK}"))
            .header("Content-Type", "application/json")
            .header("Content-Encoding", encoding)
            .body(body);
        world.server.anonymous().send(request)
    };
    send("gzip", b"{\"@acme/own\": []}").expect(400);
    send("identity", b"@acme/own").expect(400);
    send("br", b"@acme/own").expect(415);
    let large = format!("{{\"@acme/own\": [\"{}\"]}}", "x".repeat(9 << 20));
    send("gzip", &gzip(&large)).expect(413);
    assert!(world.upstream.seen().is_empty());
}
