//! The response cache of a proxy. The server caches a response for as long as the upstream content
//! in it. A cached response needs no plugin call. The server records each use of the response as a
//! use of the content. When one server drops the content, every server drops the response.

use packhouse_tests::database::Postgres;
use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Server, payload};
use serde_json::json;
use std::time::{Duration, Instant};

/// Returns the number of calls of the Maven plugin on this server.
fn calls(server: &Server) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let of_maven =
        |line: &&str| line.starts_with("packhouse_plugin_calls_total{") && line.contains("plugin=\"maven\"");
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    text.lines().filter(of_maven).map(count).sum()
}

/// Repeats a request until it causes no plugin call. Returns the number of plugin calls so far.
fn repeat_until_cached(server: &Server, ask: impl Fn()) -> u64 {
    eventually("the response is cached", || {
        let before = calls(server);
        ask();
        (calls(server) == before).then_some(before)
    })
}

#[test]
fn a_fresh_response_needs_no_call_and_counts_as_a_hit() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    let large = payload::bytes(1, 200_000);
    world.offer_metadata(&["1.0"], |answer| answer);
    world.offer(JAR, Answer::ok(large.clone()), &large);
    for (path, body) in [(METADATA, metadata(&["1.0"]).into_bytes()), (JAR, large)] {
        let ask = || assert_eq!(world.get(path).expect(200).body, body);
        let called = repeat_until_cached(&world.server, ask);
        let (before, requests) = (world.counts(), world.upstream.requests().len());
        (0..3).for_each(|_| ask());
        assert_eq!(calls(&world.server), called, "{path}");
        assert_eq!(world.upstream.requests().len(), requests, "{path}");
        let [hits, misses, stale, errors] = before;
        assert_eq!(world.counts(), [hits + 3, misses, stale, errors], "{path}");
    }
    let counts = world.counts();
    let expected = [("error", counts[3]), ("hit", counts[0]), ("miss", counts[1]), ("stale", counts[2])];
    assert_eq!(world.measured(), expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn another_download_does_not_end_a_cached_response() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let called = repeat_until_cached(&world.server, || drop(world.get(METADATA).expect(200)));
    let other = "org/example/b/1.0/b-1.0.jar";
    world.offer(other, Answer::ok("b"), b"b");
    world.get(other).expect(200);
    let after = calls(&world.server);
    assert!(after > called, "the download is a call");
    world.get(METADATA).expect(200);
    assert_eq!(calls(&world.server), after);
}

#[test]
fn a_cached_response_ends_with_the_freshness_of_its_content() {
    const FRESH: Duration = Duration::from_secs(2);
    let world = World::new(&json!({"metadata_ttl_s": FRESH.as_secs()}));
    world.offer_metadata(&["1.0"], |answer| answer);
    repeat_until_cached(&world.server, || drop(world.get(METADATA).expect(200)));
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    let (changed, new) = (Instant::now(), metadata(&["1.0", "2.0"]));
    eventually("the new version", || {
        let begun = Instant::now();
        let is_new = world.get(METADATA).expect(200).text() == new;
        assert!(is_new || begun <= changed + FRESH, "cached beyond its time");
        is_new.then_some(())
    });
}

#[test]
fn a_purge_ends_a_cached_response_at_once() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer(JAR, Answer::ok("one"), b"one");
    repeat_until_cached(&world.server, || drop(world.get(JAR).expect(200)));
    world.offer(JAR, Answer::ok("two"), b"two");
    assert_eq!(world.get(JAR).expect(200).text(), "one");
    world.api.call("DELETE", &format!("/v1/repositories/{}/cache?path=/org", world.id)).expect(204);
    assert_eq!(world.get(JAR).expect(200).text(), "two");
}

#[test]
fn changed_settings_end_a_cached_response_at_once() {
    let world = World::new(&json!({"metadata_ttl_s": 600}));
    world.offer_metadata(&["1.0"], |answer| answer);
    repeat_until_cached(&world.server, || drop(world.get(METADATA).expect(200)));
    world.offer_metadata(&["2.0"], |answer| answer);
    world.set(&json!({"metadata_ttl_s": 0}));
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["2.0"]));
    world.upstream.down(true);
    world.set(&json!({"metadata_ttl_s": 0, "offline": true}));
    // The proxy is offline, so it serves the response without revalidation. The metrics count the
    // response as stale.
    repeat_until_cached(&world.server, || {
        assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["2.0"]));
    });
    let stale = || world.counts()[2];
    let before = stale();
    world.get(METADATA).expect(200);
    assert_eq!(stale(), before + 1);
}

#[test]
fn a_stale_response_for_a_failing_upstream_is_not_cached() {
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
fn content_used_from_the_response_cache_is_not_evicted_first() {
    let world = World::new(&json!({"cache_max_bytes": 350_000}));
    // The first download of a file changes the version list of its package. This change drops the
    // cached responses for all files of the package. So each file here has a package of its own.
    let jar = |number: usize| format!("org/example/a{number}/1.0/a{number}-1.0.jar");
    let offer = |number: usize| {
        let bytes = payload::bytes(number as u64, 100_000);
        world.offer(&jar(number), Answer::ok(bytes.clone()), &bytes);
    };
    for number in 0..3 {
        offer(number);
        repeat_until_cached(&world.server, || drop(world.get(&jar(number)).expect(200)));
    }
    // A client uses the oldest file again. The response comes from the cache, without a plugin
    // call.
    let called = calls(&world.server);
    world.get(&jar(0)).expect(200);
    assert_eq!(calls(&world.server), called);
    offer(3);
    world.get(&jar(3)).expect(200);
    let jars = || world.cached_paths().into_iter().filter(|path| path.ends_with(".jar")).collect::<Vec<_>>();
    eventually("the cache shrinks", || (jars().len() < 4).then_some(()));
    assert_eq!(jars(), [0, 2, 3].map(|number| format!("/{}", jar(number))));
    world.get(&jar(1)).expect(200);
    assert_eq!(world.upstream.count(&format!("/{}", jar(1))), 2, "the evicted file is fetched again");
}

/// The first proxy of a group lacks the file. The server caches this absence for a limited time
/// only.
#[test]
fn a_group_uses_another_member_while_an_absence_is_cached() {
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
    let called = repeat_until_cached(&world.server, || assert!(!ask().contains("2.0")));
    assert!(called > 0);
    world.offer_metadata(&["2.0"], |answer| answer);
    let changed = Instant::now();
    eventually("the first member's version", || {
        let begun = Instant::now();
        let is_new = ask().contains("2.0");
        assert!(is_new || begun <= changed + NOTHING, "cached beyond the time of an absence");
        is_new.then_some(())
    });
    // A purge of a member also drops the group's cached response.
    repeat_until_cached(&world.server, || assert!(ask().contains("2.0")));
    world.offer_metadata(&["2.0", "3.0"], |answer| answer);
    assert!(!ask().contains("3.0"));
    world.api.call("DELETE", &format!("/v1/repositories/{}/cache", world.id)).expect(204);
    assert!(ask().contains("3.0"));
}

#[test]
fn a_cached_response_ends_on_another_server_as_well() {
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
        repeat_until_cached(server, || assert_eq!(text(server), metadata(&["1.0"])));
    }
    upstream.on(&format!("/{METADATA}"), Answer::ok(metadata(&["2.0"])));
    assert_eq!(text(&other), metadata(&["1.0"]), "the response is fresh");
    // After a purge on one server, no server serves the old content.
    api.call("DELETE", &format!("/v1/repositories/{id}/cache")).expect(204);
    assert_eq!(text(&other), metadata(&["2.0"]));
    assert_eq!(text(&one), metadata(&["2.0"]));
}
