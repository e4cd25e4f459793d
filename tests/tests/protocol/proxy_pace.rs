//! How a proxy treats its upstream: how much it asks at one time, when it leaves it alone, what it asks again, and what it counts.

use packhouse_tests::payload;
use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use serde_json::json;

fn jar(number: usize) -> String {
    format!("org/example/n{number}/1/n{number}-1.jar")
}

#[test]
fn no_more_is_asked_at_one_time_than_is_set() {
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
        eventually("as many as may are asked", || (world.upstream.seen().len() == MOST).then_some(()));
        gates.iter().for_each(Gate::open);
        for (number, client) in clients.into_iter().enumerate() {
            assert_eq!(client.join().unwrap(), jar(number));
        }
    });
    assert_eq!(world.upstream.peak(), MOST);
}

/// Each question about a file leads to one about its checksum, before the file's bytes are wanted.
#[test]
fn files_that_wait_for_their_checksums_leave_room_to_ask_for_them() {
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
fn who_finds_no_place_in_time_is_told() {
    let world = World::with(&[("PACKHOUSE_UPSTREAM_CONCURRENCY", "1")], &json!({}));
    let gate = Gate::new();
    world.offer(&jar(0), Answer::ok("slow").silent(&gate), b"slow");
    world.offer(&jar(1), Answer::ok("quick"), b"quick");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| world.get(&jar(0)).expect(502));
        eventually("it is asked", || (world.upstream.seen().len() == 1).then_some(()));
        let waits = scope.spawn(|| world.get(&jar(1)).status);
        slow.join().unwrap();
        // It had its turn after the other was given up, or it was told that there was none.
        assert!(matches!(waits.join().unwrap(), 200 | 502));
    });
    gate.open();
    world.get(&jar(1)).expect(200);
}

#[test]
fn after_failures_in_a_row_an_upstream_is_left_alone_until_one_request_finds_it_well() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"negative_ttl_s": 0, "metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let known = world.get(METADATA).expect(200).text();
    for number in 0..5 {
        world.upstream.on(&format!("/{}", jar(number)), Answer::new(500, "no"));
        world.get(&jar(number)).expect(502);
    }
    let before = world.upstream.seen().len();
    for _ in 0..20 {
        world.get(JAR).expect(502);
    }
    assert_eq!(world.get(METADATA).expect(200).text(), known, "what is kept serves on");
    assert_eq!(world.upstream.seen().len(), before, "nothing is asked");

    // Another repository's upstream is another's.
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
            eventually("one request finds out", || {
                let answer = world.client.get(&path);
                (answer.status == 200).then_some(answer)
            })
        });
        eventually("the time is up", || (world.upstream.seen().len() > before).then_some(()));
        for number in 0..20 {
            world.get(&jar(number)).expect(502);
        }
        assert_eq!(world.upstream.seen().len(), before + 1, "one asks, and no other");
        gate.open();
        assert_eq!(tries.join().unwrap().text(), "well");
    });
    world.offer(&jar(0), Answer::ok("again"), b"again");
    world.get(&jar(0)).expect(200);
}

#[test]
fn a_time_to_wait_is_waited_and_no_longer() {
    let world = World::new(&json!({}));
    world.upstream.on(&format!("/{JAR}"), Answer::new(503, "").header("Retry-After", "2"));
    world.get(JAR).expect(502);
    world.offer(JAR, Answer::ok("x"), b"x");
    world.get(JAR).expect(502);
    assert_eq!(world.upstream.seen().len(), 1);
    eventually("it is asked again", || {
        (world.client.get(&format!("/repositories/proxy/{JAR}")).status == 200).then_some(())
    });
}

#[test]
fn a_date_is_a_validator_where_there_is_no_tag() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    let date = "Mon, 05 Jan 2026 10:00:00 GMT";
    world.offer_metadata(&["1.0"], |answer| answer.header("Last-Modified", date));
    let first = world.get(METADATA).expect(200).text();
    assert_eq!(world.get(METADATA).expect(200).text(), first);
    let seen = world.upstream.seen();
    assert_eq!(seen[0].header("if-modified-since"), None);
    assert_eq!(seen[1].header("if-modified-since"), Some(date));
    assert_eq!(seen[1].header("if-none-match"), None);
    assert_eq!(world.counts(), [1, 1, 0, 0], "that it is still right is a hit");
    world.offer_metadata(&["1.0", "2.0"], |answer| {
        answer.header("Last-Modified", "Tue, 06 Jan 2026 10:00:00 GMT")
    });
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["1.0", "2.0"]));
}

#[test]
fn while_an_upstream_takes_its_time_all_get_what_is_kept_and_one_question_is_asked() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let old = world.get(METADATA).expect(200).text();
    let gate = Gate::new();
    world.offer_metadata(&["1.0", "2.0"], |answer| answer.silent(&gate));
    let before = world.upstream.seen().len();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(world.get(METADATA).expect(200).text(), old));
        }
    });
    // Whoever comes later does not wait at all, as often as it comes.
    for _ in 0..50 {
        assert_eq!(world.get(METADATA).expect(200).text(), old);
    }
    assert_eq!(world.upstream.seen().len(), before + 1);
    assert_eq!(world.counts(), [0, 1, 66, 0]);
    world.set(&json!({"metadata_ttl_s": 600}));
    gate.open();
    let new = metadata(&["1.0", "2.0"]);
    eventually("the new one is there", || (world.get(METADATA).expect(200).text() == new).then_some(()));
    assert_eq!(world.upstream.seen().len(), before + 1, "it is the answer to that one question");
}

#[test]
fn without_stale_on_error_a_failure_is_one() {
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
fn what_was_used_last_is_kept_longest() {
    let world = World::new(&json!({"cache_max_bytes": 350_000}));
    let offer = |number: usize| {
        let bytes = payload::bytes(number as u64, 100_000);
        world.offer(&jar(number), Answer::ok(bytes.clone()), &bytes);
        world.get(&jar(number)).expect(200);
    };
    (0..3).for_each(offer);
    // The oldest is used again, so the second goes.
    world.get(&jar(0)).expect(200);
    offer(3);
    let jars = || world.kept().into_iter().filter(|kept| kept.ends_with(".jar")).collect::<Vec<_>>();
    eventually("the cache shrinks", || (jars().len() < 4).then_some(()));
    assert_eq!(jars(), [0, 2, 3].map(|number| format!("/{}", jar(number))));
    assert!(world.cache()["bytes"].as_u64().unwrap() <= 350_000);
    world.get(&jar(1)).expect(200);
    assert_eq!(world.upstream.count(&format!("/{}", jar(1))), 2, "what went is fetched again");
}

#[test]
fn what_is_kept_is_told_with_since_when_and_when_it_was_last_used() {
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
