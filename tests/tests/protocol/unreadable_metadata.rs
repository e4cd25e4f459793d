//! Unreadable metadata. The proxy never replaces readable metadata with unreadable ones, and never
//! caches unreadable ones.

use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Gate};
use serde_json::json;

const GARBAGE: &[&[u8]] = &[
    b"",
    b"not even XML",
    b"<metadata><versioning>",
    b"\xff\xfe\x00garbage\x00",
    b"{\"error\": \"maintenance\"}",
];

fn garbage(bytes: &[u8]) -> Answer {
    Answer::ok(bytes).header("Content-Type", "application/xml").header("ETag", "\"garbage\"")
}

#[test]
fn unreadable_metadata_do_not_replace_readable_ones() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer.header("ETag", "\"1\""));
    let good = world.get(METADATA).expect(200).text();
    for (number, bytes) in GARBAGE.iter().enumerate() {
        world.upstream.on(&format!("/{METADATA}"), garbage(bytes));
        assert_eq!(world.get(METADATA).expect(200).text(), good, "{bytes:?}");
        let requests = world.upstream.requests();
        let conditions: Vec<_> =
            requests.iter().filter_map(|request| request.header("if-none-match")).collect();
        assert_eq!(conditions, vec!["\"1\""; number + 1], "the readable copy is revalidated");
        let [_, _, stale, errors] = world.counts();
        assert_eq!((stale, errors), (number as u64 + 1, number as u64 + 1));
    }
    // The checksum belongs to the served document.
    let sum = world.get(&format!("{METADATA}.sha1")).expect(200).text();
    assert_eq!(sum, packhouse_tests::digests::sha1(good.as_bytes()));
    world.upstream.down(true);
    assert_eq!(world.get(METADATA).expect(200).text(), good);
    world.upstream.down(false);
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["1.0", "2.0"]));
}

#[test]
fn unreadable_metadata_are_not_cached() {
    let world = World::new(&json!({}));
    for bytes in GARBAGE {
        world.upstream.on(&format!("/{METADATA}"), garbage(bytes));
        world.get(METADATA).expect(502);
    }
    assert!(world.cached_paths().is_empty(), "{:?}", world.cached_paths());
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    assert_eq!(world.cached_paths(), [format!("/{METADATA}")]);
}

/// Unreadable responses of an upstream. While the proxy has a readable copy, it does not send a new
/// request to this upstream each time.
#[test]
fn an_upstream_with_unreadable_responses_is_not_requested_each_time() {
    let world = World::new(&json!({"metadata_ttl_s": 1}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    world.upstream.on(&format!("/{METADATA}"), garbage(b"no"));
    eventually("the upstream has a request", || {
        assert_eq!(world.get(METADATA).expect(200).text(), good);
        (world.upstream.requests().len() == 2).then_some(())
    });
    assert_eq!(world.get(METADATA).expect(200).text(), good);
    world.offer_metadata(&["2.0"], |answer| answer);
    eventually("the upstream is requested after a while", || {
        (world.get(METADATA).expect(200).text() == metadata(&["2.0"])).then_some(())
    });
}

/// A response arrives after all clients have left. The next client's request checks the response
/// before the proxy caches it.
#[test]
fn a_background_response_is_checked_before_it_is_cached() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    for (answer, expected) in [
        (garbage(b"no"), metadata(&["1.0"])),
        (Answer::ok(metadata(&["1.0", "2.0"])), metadata(&["1.0", "2.0"])),
    ] {
        let gate = Gate::new();
        world.upstream.on(&format!("/{METADATA}"), answer.silent(&gate));
        assert_eq!(world.get(METADATA).expect(200).text(), good);
        let requests = world.upstream.requests().len();
        gate.open();
        world.upstream.on(&format!("/{METADATA}"), Answer::new(500, "no"));
        eventually("the response arrived and was checked", || {
            let text = world.get(METADATA).expect(200).text();
            (text == expected && world.upstream.requests().len() > requests).then_some(())
        });
    }
}

#[test]
fn clients_that_wait_for_an_unreadable_response_get_the_cached_copy() {
    let world = World::with(&[("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")], &json!({"metadata_ttl_s": 1}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    let gate = Gate::new();
    world.upstream.on(&format!("/{METADATA}"), garbage(b"no").silent(&gate));
    let served = std::thread::scope(|scope| {
        let ask = || {
            eventually("the copy is stale", || {
                let text = world.get(METADATA).expect(200).text();
                (world.upstream.requests().len() == 2).then_some(text)
            })
        };
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        eventually("the upstream has a request", || (world.upstream.requests().len() == 2).then_some(()));
        gate.open();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(served.iter().all(|text| *text == good));
    assert_eq!(world.cached_paths(), [format!("/{METADATA}")]);
}

/// A call fails because the proxy cannot fetch a file beside the metadata. The proxy does not
/// discard the metadata because of this failure.
#[test]
fn an_unrelated_failure_does_not_discard_metadata() {
    let world = World::new(&json!({}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.upstream.on(&format!("/{JAR}"), Answer::new(500, "no"));
    world.get(METADATA).expect(200);
    world.get(JAR).expect(502);
    assert_eq!(world.cached_paths(), [format!("/{METADATA}")]);
}
