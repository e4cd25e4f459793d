//! Compatibility with a component of the first release, in which a component's requests did not yet
//! name their package. Such a component sees the proxies of a group only for callers who may read
//! all hosted members.

use super::HiddenNamesFixture;
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
    let world = HiddenNamesFixture::on(server, "released", &json!({}));
    world.upstream.on("/lib", Answer::ok("theirs"));
    world.upstream.on("/other", Answer::ok("other"));
    world.owner.put("/repositories/own/lib", "ours").expect(201);
    assert_eq!(world.owner.get("/repositories/own/lib").expect(200).text(), "ours");
    assert_eq!(world.server.anonymous().get("/repositories/elsewhere/lib").expect(200).text(), "theirs");

    // The caller may read all hosted members. So the component sees the proxies, and decides itself
    // which member serves a name.
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    assert_eq!(member.get("/repositories/all").expect(200).text(), "own elsewhere");
    assert_eq!(member.get("/repositories/all/lib").expect(200).text(), "ours");
    assert_eq!(member.get("/repositories/all/other").expect(200).text(), "other");
    // Other callers get no upstream content through this component. Its requests name no package,
    // so the server cannot tell whether the package is hosted.
    let before = world.upstream.requests().len();
    for (who, client) in world.without_access() {
        assert_eq!(client.get("/repositories/all").expect(200).text(), "", "{who}");
        client.get("/repositories/all/lib").expect(404);
    }
    assert_eq!(world.upstream.requests().len(), before);
    // If every hosted member is public, all callers may read all hosted members.
    world.set(&world.hosted, &json!({"public": true}));
    for (who, client) in world.without_access().into_iter().skip(1) {
        assert_eq!(client.get("/repositories/all/other").expect(200).text(), "other", "{who}");
    }
}
