//! A component that was built before requests said what package they are about: it runs on, and sees a group's proxies only together
//! with all that is hosted beside them.

use super::World;
use packhouse_tests::upstream::Answer;
use packhouse_tests::{Server, checkout};
use serde_json::json;

#[test]
fn a_component_of_the_first_release_still_runs() {
    let plugins = tempfile::tempdir().unwrap();
    let guest = checkout().join("target/release/guests/released.wasm");
    std::fs::copy(&guest, plugins.path().join("released.wasm"))
        .unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", guest.display()));
    let server = Server::with()
        .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8")
        .arg("--plugins")
        .arg(plugins.path().to_str().unwrap())
        .start();
    let world = World::on(server, "released", &json!({}));
    world.upstream.on("/lib", Answer::ok("theirs"));
    world.upstream.on("/other", Answer::ok("other"));
    world.owner.put("/repositories/own/lib", "ours").expect(201);
    assert_eq!(world.owner.get("/repositories/own/lib").expect(200).text(), "ours");
    assert_eq!(world.server.anonymous().get("/repositories/elsewhere/lib").expect(200).text(), "theirs");

    // Who may read all that is hosted has the proxies, and the component judges as it always did.
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    assert_eq!(member.get("/repositories/all").expect(200).text(), "own elsewhere");
    assert_eq!(member.get("/repositories/all/lib").expect(200).text(), "ours");
    assert_eq!(member.get("/repositories/all/other").expect(200).text(), "other");
    // Who may not, is not shown what an upstream has of names that may be hosted.
    let before = world.upstream.seen().len();
    for (who, client) in world.strangers() {
        assert_eq!(client.get("/repositories/all").expect(200).text(), "", "{who}");
        client.get("/repositories/all/lib").expect(404);
    }
    assert_eq!(world.upstream.seen().len(), before);
    // Where nothing hosted is hidden from anybody, nothing changes.
    world.set(&world.hosted, &json!({"public": true}));
    for (who, client) in world.strangers().into_iter().skip(1) {
        assert_eq!(client.get("/repositories/all/other").expect(200).text(), "other", "{who}");
    }
}
