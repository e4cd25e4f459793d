//! `npm audit` through a group or a proxy. The server sends no hosted name and no claimed name to
//! an upstream.

use super::HiddenNamesFixture;
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

/// Creates a fixture. The hosted repository has `@acme/own`, the group claims `grouped`, and the
/// proxy claims `apart`.
fn world() -> HiddenNamesFixture {
    let world = HiddenNamesFixture::with("npm", &json!({"claimed_names": ["grouped"]}));
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

/// Returns the last body that the upstream received.
fn last_body(world: &HiddenNamesFixture) -> Value {
    let requests = world.upstream.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.header("content-encoding"), None);
    document(&last.body)
}

#[test]
fn audits_do_not_send_hosted_names_upstream() {
    let world = world();
    let question =
        json!({"@acme/own": ["1.0.0"], "grouped": ["1.0.0"], "apart": ["1.0.0"], "lib": ["1.0.0"]});
    // At its own address, a proxy hides the same names as in its groups.
    for address in ["all", "elsewhere"] {
        for (who, client) in world.without_access() {
            for packed in [true, false] {
                let answer = ask(&client, address, BULK, &question, packed).expect(200);
                assert_eq!(document(&answer.body), json!({"lib": [{"id": 7}]}), "{who} {address}");
                assert_eq!(last_body(&world), json!({"lib": ["1.0.0"]}), "{who} {address}");
            }
        }
    }
    let before = world.upstream.requests().len();
    for address in ["all", "elsewhere"] {
        let ours = json!({"@acme/own": ["1.0.0"]});
        let answer = ask(&world.server.anonymous(), address, BULK, &ours, true).expect(200);
        assert_eq!(document(&answer.body), json!({}));
    }
    assert_eq!(world.upstream.requests().len(), before, "a query with only hosted names is not sent");
    // The server passes a query without hosted names on unchanged.
    let packed = gzip(&json!({"lib": ["1.0.0"]}).to_string());
    let request = Request::new("POST", &format!("/repositories/all{BULK}"))
        .header("Content-Type", "application/json")
        .header("Content-Encoding", "gzip")
        .body(packed.clone());
    world.server.anonymous().send(request).expect(200);
    let last = world.upstream.requests().pop().unwrap();
    assert_eq!((last.header("content-encoding"), &last.body), (Some("gzip"), &packed));
}

#[test]
fn hosted_names_are_removed_from_the_tree_of_older_clients() {
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
        let last_body = last_body(&world);
        assert_eq!(
            last_body["dependencies"],
            json!({"lib": {"version": "1.0.0", "requires": {},
            "dependencies": {"deep": {"version": "2.0.0"}}}}),
            "{address}"
        );
        assert_eq!(last_body["requires"], json!({"lib": "^1.0.0"}));
        for name in ["@acme/own", "grouped", "apart"] {
            assert!(!last_body.to_string().contains(name), "{address}: {name}: {last_body}");
        }
    }
}

#[test]
fn an_unreadable_query_is_not_sent_upstream() {
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
    assert!(world.upstream.requests().is_empty());
}
