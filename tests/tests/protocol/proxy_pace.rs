//! A proxy's use of its upstream: concurrency, pauses, revalidation, and counters.

use packhouse_tests::payload;
use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use serde_json::json;

fn jar(number: usize) -> String {
    format!("org/example/n{number}/1/n{number}-1.jar")
}

#[test]
fn concurrent_upstream_requests_stay_within_the_limit() {
    const CLIENTS: usize = 12;
    const MOST: usize = 3;
    let most = MOST.to_string();
    let patient =
        [("PACKHOUSE_UPSTREAM_CONCURRENCY", most.as_str()), ("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({}));
    let gates: Vec<Gate> = (0..CLIENTS).map(|_| Gate::new()).collect();
    for (number, gate) in gates.iter().enumerate() {
        let path = jar(number);
        world.offer(&path, Answer::ok(path.clone()).silent(gate), path.as_bytes());
    }
    std::thread::scope(|scope| {
        let ask = |number: usize| {
            let world = &world;
            scope.spawn(move || world.get(&jar(number)).expect(200).text())
        };
        let clients: Vec<_> = (0..CLIENTS).map(ask).collect();
        eventually("the limit is reached", || (world.upstream.requests().len() == MOST).then_some(()));
        gates.iter().for_each(Gate::open);
        for (number, client) in clients.into_iter().enumerate() {
            assert_eq!(client.join().unwrap(), jar(number));
        }
    });
    assert_eq!(world.upstream.peak(), MOST);
}

/// Requests for checksums. The proxy requests each file's checksum before it reads the file's
/// bytes. Even with one slot for upstream requests, the two requests must not block each other.
#[test]
fn files_that_wait_for_their_checksums_do_not_block_the_checksum_requests() {
    let patient = [("PACKHOUSE_UPSTREAM_CONCURRENCY", "1"), ("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({}));
    for number in 0..6 {
        let bytes = payload::bytes(number as u64, 200_000);
        world.offer(&jar(number), Answer::ok(bytes.clone()), &bytes);
    }
    std::thread::scope(|scope| {
        for number in 0..6 {
            let world = &world;
            scope.spawn(move || assert_eq!(world.get(&jar(number)).expect(200).body.len(), 200_000));
        }
    });
}

#[test]
fn a_request_without_a_free_slot_is_refused_in_time() {
    let world = World::with(&[("PACKHOUSE_UPSTREAM_CONCURRENCY", "1")], &json!({}));
    let gate = Gate::new();
    world.offer(&jar(0), Answer::ok("slow").silent(&gate), b"slow");
    world.offer(&jar(1), Answer::ok("quick"), b"quick");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| world.get(&jar(0)).expect(502));
        eventually("the upstream has the request", || (world.upstream.requests().len() == 1).then_some(()));
        let waits = scope.spawn(|| world.get(&jar(1)).status);
        slow.join().unwrap();
        // The second request either got the slot after the first one timed out, or the server
        // refused it for lack of a slot.
        assert!(matches!(waits.join().unwrap(), 200 | 502));
    });
    gate.open();
    world.get(&jar(1)).expect(200);
}

#[test]
fn repeated_failures_pause_an_upstream_until_one_request_succeeds() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"negative_ttl_s": 0, "metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let known = world.get(METADATA).expect(200).text();
    for number in 0..5 {
        world.upstream.on(&format!("/{}", jar(number)), Answer::new(500, "no"));
        world.get(&jar(number)).expect(502);
    }
    let before = world.upstream.requests().len();
    for _ in 0..20 {
        world.get(JAR).expect(502);
    }
    assert_eq!(world.get(METADATA).expect(200).text(), known, "the cached copy is served");
    assert_eq!(world.upstream.requests().len(), before, "the upstream gets no request");

    // The failures do not pause the upstream of another repository.
    let other = Upstream::start();
    other.on(&format!("/{JAR}"), Answer::ok("other"));
    let id = world.api.create_proxy("other", "maven", &other.url(), &json!({}));
    let token = world.api.create_token(&[&id], &["read"], None);
    let client = world.server.anonymous().basic(packhouse_tests::server::OWNER, &token.secret);
    client.get(&format!("/repositories/other/{JAR}")).expect(200);

    let gate = Gate::new();
    world.offer(JAR, Answer::ok("well").silent(&gate), b"well");
    let path = format!("/repositories/proxy/{JAR}");
    std::thread::scope(|scope| {
        let tries = scope.spawn(|| {
            eventually("one request succeeds", || {
                let answer = world.client.get(&path);
                (answer.status == 200).then_some(answer)
            })
        });
        eventually("the time is up", || (world.upstream.requests().len() > before).then_some(()));
        for number in 0..20 {
            world.get(&jar(number)).expect(502);
        }
        assert_eq!(world.upstream.requests().len(), before + 1, "only one request is sent");
        gate.open();
        assert_eq!(tries.join().unwrap().text(), "well");
    });
    world.offer(&jar(0), Answer::ok("again"), b"again");
    world.get(&jar(0)).expect(200);
}

#[test]
fn a_retry_after_is_respected_and_not_exceeded() {
    let world = World::new(&json!({}));
    world.upstream.on(&format!("/{JAR}"), Answer::new(503, "").header("Retry-After", "2"));
    world.get(JAR).expect(502);
    world.offer(JAR, Answer::ok("x"), b"x");
    world.get(JAR).expect(502);
    assert_eq!(world.upstream.requests().len(), 1);
    eventually("the upstream is requested again", || {
        (world.client.get(&format!("/repositories/proxy/{JAR}")).status == 200).then_some(())
    });
}

#[test]
fn a_date_is_a_validator_without_a_tag() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    let date = "Mon, 05 Jan 2026 10:00:00 GMT";
    world.offer_metadata(&["1.0"], |answer| answer.header("Last-Modified", date));
    let first = world.get(METADATA).expect(200).text();
    assert_eq!(world.get(METADATA).expect(200).text(), first);
    let requests = world.upstream.requests();
    assert_eq!(requests[0].header("if-modified-since"), None);
    assert_eq!(requests[1].header("if-modified-since"), Some(date));
    assert_eq!(requests[1].header("if-none-match"), None);
    assert_eq!(world.counts(), [1, 1, 0, 0], "a successful revalidation is a hit");
    world.offer_metadata(&["1.0", "2.0"], |answer| {
        answer.header("Last-Modified", "Tue, 06 Jan 2026 10:00:00 GMT")
    });
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["1.0", "2.0"]));
}

#[test]
fn while_an_upstream_is_slow_all_clients_get_the_cached_copy_and_one_request_is_sent() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let old = world.get(METADATA).expect(200).text();
    let gate = Gate::new();
    world.offer_metadata(&["1.0", "2.0"], |answer| answer.silent(&gate));
    let before = world.upstream.requests().len();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(world.get(METADATA).expect(200).text(), old));
        }
    });
    // Later clients get the copy without waiting, however often they repeat the request.
    for _ in 0..50 {
        assert_eq!(world.get(METADATA).expect(200).text(), old);
    }
    assert_eq!(world.upstream.requests().len(), before + 1);
    assert_eq!(world.counts(), [0, 1, 66, 0]);
    world.set(&json!({"metadata_ttl_s": 600}));
    gate.open();
    let new = metadata(&["1.0", "2.0"]);
    eventually("the new copy is served", || (world.get(METADATA).expect(200).text() == new).then_some(()));
    assert_eq!(world.upstream.requests().len(), before + 1, "the new copy came from that request");
}

#[test]
fn without_stale_on_error_a_failure_is_reported() {
    let world = World::new(&json!({"metadata_ttl_s": 0, "stale_on_error": false}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    world.upstream.down(true);
    world.get(METADATA).expect(502);
    world.set(&json!({"stale_on_error": true}));
    world.get(METADATA).expect(200);
    assert_eq!(world.counts(), [0, 1, 1, 1]);
}

#[test]
fn the_least_recently_used_content_is_evicted() {
    let world = World::new(&json!({"cache_max_bytes": 350_000}));
    let offer = |number: usize| {
        let bytes = payload::bytes(number as u64, 100_000);
        world.offer(&jar(number), Answer::ok(bytes.clone()), &bytes);
        world.get(&jar(number)).expect(200);
    };
    (0..3).for_each(offer);
    // A client uses the oldest file again, so the proxy evicts the second one.
    world.get(&jar(0)).expect(200);
    offer(3);
    let jars = || world.cached_paths().into_iter().filter(|path| path.ends_with(".jar")).collect::<Vec<_>>();
    eventually("the cache shrinks", || (jars().len() < 4).then_some(()));
    assert_eq!(jars(), [0, 2, 3].map(|number| format!("/{}", jar(number))));
    assert!(world.cache()["bytes"].as_u64().unwrap() <= 350_000);
    world.get(&jar(1)).expect(200);
    assert_eq!(world.upstream.count(&format!("/{}", jar(1))), 2, "the evicted file is fetched again");
}

#[test]
fn cached_content_is_listed_with_its_fetch_and_last_use_times() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer.header("ETag", "\"1\""));
    let entry = || world.cache()["items"][0].clone();
    let time = |entry: &serde_json::Value, name: &str| entry[name].as_u64().unwrap();
    world.get(METADATA).expect(200);
    let first = entry();
    assert_eq!(first["path"], format!("/{METADATA}"));
    assert_eq!((first["method"].as_str(), first["status"].as_u64()), (Some("GET"), Some(200)));
    assert_eq!(time(&first, "size"), metadata(&["1.0"]).len() as u64);
    let later = eventually("time goes by", || {
        world.get(METADATA).expect(200);
        let entry = entry();
        (time(&entry, "validated_at") > time(&first, "validated_at")).then_some(entry)
    });
    assert_eq!(time(&later, "fetched_at"), time(&first, "fetched_at"), "it is the same copy");
    world.set(&json!({"metadata_ttl_s": 600}));
    eventually("it is used", || {
        world.get(METADATA).expect(200);
        (time(&entry(), "last_used_at") > time(&first, "last_used_at")).then_some(())
    });
}

#[test]
fn the_api_and_the_metrics_count_the_same() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer.header("ETag", "\"1\""));
    world.get(METADATA).expect(200);
    world.get(METADATA).expect(200);
    world.upstream.down(true);
    world.get(METADATA).expect(200);
    world.get(JAR).expect(502);
    let [hits, misses, stale, errors] = world.counts();
    assert_eq!([hits, misses, stale, errors], [1, 1, 1, 1]);
    let expected = [("error", errors), ("hit", hits), ("miss", misses), ("stale", stale)];
    assert_eq!(world.measured(), expected.map(|(name, count)| (name.to_owned(), count)).into());
}
