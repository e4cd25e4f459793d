//! Every kind of event, with its content.

use std::process::Command;

use packhouse_tests::Api;
use packhouse_tests::cli::packhouse;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, eventually, program};
use serde_json::{Value, json};

use super::receiver::{Message, Receiver};
use super::release::Release;
use super::{ALL, Hook, allowing};

#[track_caller]
fn sound(message: &Message, hook: &Hook, source: &str) -> Value {
    assert!(message.is_signed_with(&hook.secret), "{message:?}");
    assert_eq!(message.header("content-type"), "application/cloudevents+json");
    let event = message.json();
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["id"], message.header("webhook-id"));
    assert_eq!(event["datacontenttype"], "application/json");
    assert_eq!(event["source"], source);
    let time = event["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    assert!(event["data"]["organization"]["id"].is_string(), "{event}");
    event["data"].clone()
}

#[test]
fn each_event_is_delivered_with_its_content() {
    let server = allowing().start();
    let (api, receiver) = (Api::sign_in(&server), Receiver::start());
    let hook = Hook::create(&api, &receiver.url(), &ALL, json!("*"));
    let source = api.call("GET", "/v1/organization").expect(200).json()["base_url"].clone();
    let source = source.as_str().map_or_else(|| server.base_url(), str::to_owned);
    let delivered = |kind: &str, what: &str| sound(&receiver.expect(kind, what), &hook, &source);

    // Events of a repository and its token.
    let npm = FormatRepository::hosted(&server, "npm", "lib", &json!({}));
    let made = delivered("repository.created", "lib");
    assert_eq!(made["repository"], json!({"id": npm.id, "name": "lib", "format": "npm", "kind": "hosted"}));
    assert_eq!(made["created_by"], OWNER);
    let token = delivered("token.created", "");
    assert_eq!(token["token"]["repositories"], json!([npm.id]));
    assert_eq!(token["token"]["scope"], json!(["read", "write"]));
    assert!(
        !receiver
            .messages()
            .iter()
            .any(|message| { String::from_utf8_lossy(&message.body).contains(&npm.token.secret) })
    );

    // Events of publishes. Each names the tag that the publish moves.
    for version in ["1.0.0", "1.1.0"] {
        npm.client.send(publish(&npm, version)).expect(201);
    }
    let published = delivered("package.published", "lib/hello/1.0.0");
    assert_eq!(published["repository"], json!({"id": npm.id, "name": "lib", "format": "npm"}));
    assert_eq!((&published["package"], &published["version"]), (&json!("hello"), &json!("1.0.0")));
    assert_eq!(published["published_by"], OWNER);
    assert!(published["published_at"].as_i64().unwrap() > 1_600_000_000_000);
    let file = &published["files"][0];
    assert!(file["path"].as_str().unwrap().ends_with("hello-1.0.0.tgz"), "{published}");
    assert!(file["size"].as_u64().unwrap() > 0 && file["digest"].as_str().unwrap().starts_with("sha256:"));
    let moved = eventually("the tag has moved twice", || {
        let moved: Vec<Value> =
            receiver.of_kind("tag.moved").iter().map(|message| message.json()["data"].clone()).collect();
        (moved.len() >= 2).then_some(moved)
    });
    assert_eq!(
        (&moved[0]["tag"], &moved[0]["from"], &moved[0]["to"]),
        (&json!("latest"), &Value::Null, &json!("1.0.0"))
    );
    assert_eq!((&moved[1]["from"], &moved[1]["to"]), (&json!("1.0.0"), &json!("1.1.0")));
    npm.put("-/package/hello/dist-tags/old", r#""1.0.0""#).expect(201);
    assert_eq!(delivered("tag.moved", "hello/old")["to"], "1.0.0");

    // Events of a changed state, a deletion, and a restore from the trash.
    let versions = format!("/v1/repositories/{}/packages/hello/versions", npm.id);
    let state = json!({"state": "deprecated", "reason": "too old"});
    api.send("PUT", &format!("{versions}/1.0.0/state"), &state).expect(200);
    let changed = delivered("package.state_changed", "hello/1.0.0");
    assert_eq!((&changed["state"], &changed["before"]), (&json!("deprecated"), &json!("")));
    api.call("DELETE", &format!("{versions}/1.0.0")).expect(204);
    let deleted = delivered("package.deleted", "hello/1.0.0");
    assert_eq!((&deleted["version"], &deleted["files"]), (&json!("1.0.0"), &Value::Null));
    let trash = format!("/v1/repositories/{}/trash", npm.id);
    let entry = api.call("GET", &trash).expect(200).json()["items"][0]["id"].as_str().unwrap().to_owned();
    api.call("POST", &format!("{trash}/{entry}/restore")).expect(200);
    eventually("the restore is delivered", || {
        let published = receiver.of_kind("package.published");
        published.iter().any(|message| message.json()["data"]["restored"] == json!(true)).then_some(())
    });

    // Events of accounts.
    let permissions = json!({"organization": [], "repositories": []});
    api.post("/v1/invitations", &json!({"email": "new@example.com", "permissions": permissions})).expect(201);
    let invited = delivered("member.invited", "new@example.com");
    assert_eq!((&invited["email"], &invited["invited_by"]), (&json!("new@example.com"), &json!(OWNER)));
    api.call("DELETE", &format!("/v1/tokens/{}", npm.token.id)).expect(204);
    assert_eq!(delivered("token.revoked", "")["token"]["id"], json!(npm.token.id));

    // Another process, `scrub`, finds the damage.
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let bytes: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
    files.put("tools/big/1.0/big.bin", bytes).expect(201);
    damage(server.data());
    let scrubbed = Command::new(program()).args(["scrub", "--data"]).arg(server.data()).output().unwrap();
    assert!(!scrubbed.status.success());
    let corrupt = delivered("blob.corrupt", "files/sha256:");
    assert_eq!((&corrupt["repository"]["id"], &corrupt["missing"]), (&json!(files.id), &json!(false)));

    // Changes by the command line cause events as well.
    let words = ["repo", "create", "by-hand", "--format", "generic"];
    packhouse(server.data(), &words, "").success();
    delivered("repository.created", "by-hand");

    api.call("DELETE", &format!("/v1/repositories/{}", npm.id)).expect(204);
    assert_eq!(delivered("repository.deleted", "lib")["repository"]["id"], json!(npm.id));

    // The server delivered each event once and lists each once.
    let deliveries = hook.drained(&api);
    assert!(deliveries.iter().all(|one| one["state"] == "delivered"), "{deliveries:?}");
    let ids: std::collections::BTreeSet<&str> =
        deliveries.iter().map(|one| one["event_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), deliveries.len());
    assert_eq!(receiver.messages().len(), deliveries.len());
}

fn publish(npm: &FormatRepository, version: &str) -> packhouse_tests::Request {
    let document = Release::new("hello", version).document().to_string();
    packhouse_tests::Request::new("PUT", &npm.path("hello"))
        .header("Content-Type", "application/json")
        .body(document.into_bytes())
}

/// Changes a byte of the only blob that is stored as a file.
fn damage(data: &std::path::Path) {
    let mut files = Vec::new();
    packhouse_tests::database::list(&data.join("blobs"), &mut files);
    let large: Vec<&str> = files.iter().filter_map(|file| file.strip_suffix(" 200000")).collect();
    assert_eq!(large.len(), 1, "{files:?}");
    let mut bytes = std::fs::read(large[0]).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(large[0], bytes).unwrap();
}

#[test]
fn a_hook_receives_only_the_events_it_subscribes_to() {
    let server = allowing().start();
    let api = Api::sign_in(&server);
    let (one, other) =
        ["one", "other"].map(|name| FormatRepository::hosted(&server, "maven", name, &json!({}))).into();
    let (some, deletions) = (Receiver::start(), Receiver::start());
    let of_one = Hook::create(&api, &some.url(), &["package.published"], json!([one.id]));
    let of_deletions = Hook::create(&api, &deletions.url(), &["package.deleted"], json!("*"));
    other.put("org/a/lib/1.0/lib-1.0.jar", "bytes").expect(201);
    one.put("org/a/lib/1.0/lib-1.0.jar", "bytes").expect(201);
    one.put("org/a/lib/1.0/lib-1.0.jar", "bytes");
    let delivered = some.expect("package.published", "one/");
    assert_eq!(delivered.json()["data"]["package"], "org.a:lib");
    assert_eq!(of_one.drained(&api).len(), 1);
    assert_eq!(of_deletions.deliveries(&api), Vec::<Value>::new());
    // A changed webhook applies to every event after the response.
    api.patch(&of_one.path(), &json!({"events": ["package.deleted"], "repositories": "*"})).expect(200);
    other.put("org/a/lib/2.0/lib-2.0.jar", "bytes").expect(201);
    api.call("DELETE", &format!("/v1/repositories/{}/packages/org.a%3Alib/versions/2.0", other.id))
        .expect(204);
    some.expect("package.deleted", "other/");
    deletions.expect("package.deleted", "other/");
    assert_eq!(some.of_kind("package.published").len(), 1);
}
