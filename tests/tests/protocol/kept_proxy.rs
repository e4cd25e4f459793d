//! What a proxy answers is kept with the end of what it used of the upstream: no plugin is called for it again, it counts as a use
//! of what the proxy keeps, and it ends when that does, on each server.

use packhouse_tests::database::Postgres;
use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Server, payload};
use serde_json::json;
use std::time::{Duration, Instant};

/// How often the Maven plugin was called on this server.
fn calls(server: &Server) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let of_maven =
        |line: &&str| line.starts_with("packhouse_plugin_calls_total{") && line.contains("plugin=\"maven\"");
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    text.lines().filter(of_maven).map(count).sum()
}

/// Asks until no plugin is called for the answer any more; how often a plugin was called by then.
fn until_kept(server: &Server, ask: impl Fn()) -> u64 {
    eventually("the answer is kept", || {
        let before = calls(server);
        ask();
        (calls(server) == before).then_some(before)
    })
}

#[test]
fn what_is_fresh_is_answered_without_a_call_and_counts_as_a_hit() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    let large = payload::bytes(1, 200_000);
    world.offer_metadata(&["1.0"], |answer| answer);
    world.offer(JAR, Answer::ok(large.clone()), &large);
    for (path, body) in [(METADATA, metadata(&["1.0"]).into_bytes()), (JAR, large)] {
        let ask = || assert_eq!(world.get(path).expect(200).body, body);
        let called = until_kept(&world.server, ask);
        let (before, asked) = (world.counts(), world.upstream.seen().len());
        (0..3).for_each(|_| ask());
        assert_eq!(calls(&world.server), called, "{path}");
        assert_eq!(world.upstream.seen().len(), asked, "{path}");
        let [hits, misses, stale, errors] = before;
        assert_eq!(world.counts(), [hits + 3, misses, stale, errors], "{path}");
    }
    let counts = world.counts();
    let expected = [("error", counts[3]), ("hit", counts[0]), ("miss", counts[1]), ("stale", counts[2])];
    assert_eq!(world.measured(), expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn a_download_beside_it_leaves_a_kept_answer_alone() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let called = until_kept(&world.server, || drop(world.get(METADATA).expect(200)));
    let other = "org/example/b/1.0/b-1.0.jar";
    world.offer(other, Answer::ok("b"), b"b");
    world.get(other).expect(200);
    let after = calls(&world.server);
    assert!(after > called, "the download is a call");
    world.get(METADATA).expect(200);
    assert_eq!(calls(&world.server), after);
}

#[test]
fn it_ends_with_the_freshness_of_what_it_used() {
    const FRESH: Duration = Duration::from_secs(2);
    let world = World::new(&json!({"metadata_ttl_s": FRESH.as_secs()}));
    world.offer_metadata(&["1.0"], |answer| answer);
    until_kept(&world.server, || drop(world.get(METADATA).expect(200)));
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    let (changed, new) = (Instant::now(), metadata(&["1.0", "2.0"]));
    eventually("the new version", || {
        let begun = Instant::now();
        let shown = world.get(METADATA).expect(200).text() == new;
        assert!(shown || begun <= changed + FRESH, "kept beyond its time");
        shown.then_some(())
    });
}

#[test]
fn a_purge_ends_it_at_once() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer(JAR, Answer::ok("one"), b"one");
    until_kept(&world.server, || drop(world.get(JAR).expect(200)));
    world.offer(JAR, Answer::ok("two"), b"two");
    assert_eq!(world.get(JAR).expect(200).text(), "one");
    world.api.call("DELETE", &format!("/v1/repositories/{}/cache?path=/org", world.id)).expect(204);
    assert_eq!(world.get(JAR).expect(200).text(), "two");
}

#[test]
fn settings_count_at_once() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer_metadata(&["1.0"], |answer| answer);
    until_kept(&world.server, || drop(world.get(METADATA).expect(200)));
    world.offer_metadata(&["2.0"], |answer| answer);
    world.set(&json!({"metadata_ttl_s": 0}));
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["2.0"]));
    world.upstream.down(true);
    world.set(&json!({"metadata_ttl_s": 0, "offline": true}));
    // Without asking it stays as it is, and what is served is older than it should be.
    until_kept(&world.server, || {
        assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["2.0"]));
    });
    let stale = || world.counts()[2];
    let before = stale();
    world.get(METADATA).expect(200);
    assert_eq!(stale(), before + 1);
}

#[test]
fn what_stands_in_for_a_failing_upstream_is_not_kept() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    world.upstream.down(true);
    for _ in 0..3 {
        let before = calls(&world.server);
        world.get(METADATA).expect(200);
        assert!(calls(&world.server) > before, "the upstream may be back");
    }
}

#[test]
fn what_is_used_from_memory_does_not_make_room_first() {
    let world = World::new(&json!({"cache_max_bytes": 350_000}));
    // Each of a package of its own: a download is shown among its package's versions, which decide over all files of it.
    let jar = |number: usize| format!("org/example/a{number}/1.0/a{number}-1.0.jar");
    let offer = |number: usize| {
        let bytes = payload::bytes(number as u64, 100_000);
        world.offer(&jar(number), Answer::ok(bytes.clone()), &bytes);
    };
    for number in 0..3 {
        offer(number);
        until_kept(&world.server, || drop(world.get(&jar(number)).expect(200)));
    }
    // The oldest is used again, without a call.
    let called = calls(&world.server);
    world.get(&jar(0)).expect(200);
    assert_eq!(calls(&world.server), called);
    offer(3);
    world.get(&jar(3)).expect(200);
    let jars = || world.kept().into_iter().filter(|kept| kept.ends_with(".jar")).collect::<Vec<_>>();
    eventually("the cache shrinks", || (jars().len() < 4).then_some(()));
    assert_eq!(jars(), [0, 2, 3].map(|number| format!("/{}", jar(number))));
    world.get(&jar(1)).expect(200);
    assert_eq!(world.upstream.count(&format!("/{}", jar(1))), 2, "what made room is fetched again");
}

/// A group whose proxy has nothing: that nothing is there counts for a time, and no longer.
#[test]
fn a_group_answers_from_another_member_as_long_as_nothing_is_there() {
    const NOTHING: Duration = Duration::from_secs(2);
    let world = World::new(&json!({"metadata_ttl_s": 600, "negative_ttl_s": NOTHING.as_secs()}));
    let second = Upstream::start();
    second.on(&format!("/{METADATA}"), Answer::ok(metadata(&["1.0"])));
    let fresh = json!({"metadata_ttl_s": 600});
    let other = world.api.create_proxy("second", "maven", &second.url(), &fresh);
    let body = json!({"name": "all", "format": "maven", "kind": "group", "members": [world.id, other]});
    let group = world.api.post("/v1/repositories", &body).expect(201).field("id");
    let token = world.api.create_token(&[&world.id, &other, &group], &["read"], None);
    let client = world.server.anonymous().basic(OWNER, &token.secret);
    let ask = || client.get(&format!("/repositories/all/{METADATA}")).expect(200).text();
    let called = until_kept(&world.server, || assert!(!ask().contains("2.0")));
    assert!(called > 0);
    world.offer_metadata(&["2.0"], |answer| answer);
    let changed = Instant::now();
    eventually("the first member's version", || {
        let begun = Instant::now();
        let shown = ask().contains("2.0");
        assert!(shown || begun <= changed + NOTHING, "kept beyond the time of what is not there");
        shown.then_some(())
    });
    // A member's purge is the group's.
    until_kept(&world.server, || assert!(ask().contains("2.0")));
    world.offer_metadata(&["2.0", "3.0"], |answer| answer);
    assert!(!ask().contains("3.0"));
    world.api.call("DELETE", &format!("/v1/repositories/{}/cache", world.id)).expect(204);
    assert!(ask().contains("3.0"));
}

#[test]
fn on_another_server_it_ends_as_well() {
    let database = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start();
    let start = || {
        Server::with()
            .data(folder.path())
            .arg("--database-url")
            .arg(&database.url())
            .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
            .start()
    };
    let (one, other) = (start(), start());
    let api = Api::sign_in(&one);
    let id = api.create_proxy("proxy", "maven", &upstream.url(), &json!({"metadata_ttl_s": 600}));
    let token = api.create_token(&[&id], &["read"], None);
    let text = |server: &Server| {
        let client = server.anonymous().basic(OWNER, &token.secret);
        client.get(&format!("/repositories/proxy/{METADATA}")).expect(200).text()
    };
    upstream.on(&format!("/{METADATA}"), Answer::ok(metadata(&["1.0"])));
    for server in [&one, &other] {
        until_kept(server, || assert_eq!(text(server), metadata(&["1.0"])));
    }
    upstream.on(&format!("/{METADATA}"), Answer::ok(metadata(&["2.0"])));
    assert_eq!(text(&other), metadata(&["1.0"]), "it is fresh");
    // What one server purges no other serves, and what it then fetches all serve.
    api.call("DELETE", &format!("/v1/repositories/{id}/cache")).expect(204);
    assert_eq!(text(&other), metadata(&["2.0"]));
    assert_eq!(text(&one), metadata(&["2.0"]));
}
