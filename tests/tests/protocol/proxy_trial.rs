//! Metadata that cannot be read: they never take the place of those that can, and are not kept themselves.

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
fn what_cannot_be_read_does_not_replace_what_can() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer.header("ETag", "\"1\""));
    let good = world.get(METADATA).expect(200).text();
    for (number, bytes) in GARBAGE.iter().enumerate() {
        world.upstream.on(&format!("/{METADATA}"), garbage(bytes));
        assert_eq!(world.get(METADATA).expect(200).text(), good, "{bytes:?}");
        let asked = world.upstream.seen();
        let conditions: Vec<_> = asked.iter().filter_map(|seen| seen.header("if-none-match")).collect();
        assert_eq!(conditions, vec!["\"1\""; number + 1], "it is the good one that is asked for");
        let [_, _, stale, errors] = world.counts();
        assert_eq!((stale, errors), (number as u64 + 1, number as u64 + 1));
    }
    // The checksum is that of what is served.
    let sum = world.get(&format!("{METADATA}.sha1")).expect(200).text();
    assert_eq!(sum, packhouse_tests::digests::sha1(good.as_bytes()));
    world.upstream.down(true);
    assert_eq!(world.get(METADATA).expect(200).text(), good);
    world.upstream.down(false);
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["1.0", "2.0"]));
}

#[test]
fn what_cannot_be_read_is_not_kept() {
    let world = World::new(&json!({}));
    for bytes in GARBAGE {
        world.upstream.on(&format!("/{METADATA}"), garbage(bytes));
        world.get(METADATA).expect(502);
    }
    assert!(world.kept().is_empty(), "{:?}", world.kept());
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    assert_eq!(world.kept(), [format!("/{METADATA}")]);
}

/// While the good copy is what there is, an upstream that sends nothing of use is not asked with every request.
#[test]
fn an_upstream_that_sends_garbage_is_not_asked_for_it_again_and_again() {
    let world = World::new(&json!({"metadata_ttl_s": 1}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    world.upstream.on(&format!("/{METADATA}"), garbage(b"no"));
    eventually("it is asked", || {
        assert_eq!(world.get(METADATA).expect(200).text(), good);
        (world.upstream.seen().len() == 2).then_some(())
    });
    assert_eq!(world.get(METADATA).expect(200).text(), good);
    world.offer_metadata(&["2.0"], |answer| answer);
    eventually("it is asked after a while", || {
        (world.get(METADATA).expect(200).text() == metadata(&["2.0"])).then_some(())
    });
}

/// What comes after everybody has gone is judged by whoever comes next.
#[test]
fn what_came_in_the_background_is_judged_before_it_is_kept() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")];
    let world = World::with(&patient, &json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    for (answer, seen) in [
        (garbage(b"no"), metadata(&["1.0"])),
        (Answer::ok(metadata(&["1.0", "2.0"])), metadata(&["1.0", "2.0"])),
    ] {
        let gate = Gate::new();
        world.upstream.on(&format!("/{METADATA}"), answer.silent(&gate));
        assert_eq!(world.get(METADATA).expect(200).text(), good);
        let asked = world.upstream.seen().len();
        gate.open();
        world.upstream.on(&format!("/{METADATA}"), Answer::new(500, "no"));
        eventually("it has come and was judged", || {
            let text = world.get(METADATA).expect(200).text();
            (text == seen && world.upstream.seen().len() > asked).then_some(())
        });
    }
}

#[test]
fn of_many_who_wait_for_garbage_each_gets_what_is_kept() {
    let world = World::with(&[("PACKHOUSE_UPSTREAM_IDLE_MS", "30000")], &json!({"metadata_ttl_s": 1}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    let gate = Gate::new();
    world.upstream.on(&format!("/{METADATA}"), garbage(b"no").silent(&gate));
    let served = std::thread::scope(|scope| {
        let ask = || {
            eventually("its time is over", || {
                let text = world.get(METADATA).expect(200).text();
                (world.upstream.seen().len() == 2).then_some(text)
            })
        };
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        eventually("it is asked", || (world.upstream.seen().len() == 2).then_some(()));
        gate.open();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(served.iter().all(|text| *text == good));
    assert_eq!(world.kept(), [format!("/{METADATA}")]);
}

/// A call that fails for another reason condemns nothing: here a file beside the metadata cannot be had.
#[test]
fn a_failure_of_something_else_condemns_nothing() {
    let world = World::new(&json!({}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.upstream.on(&format!("/{JAR}"), Answer::new(500, "no"));
    world.get(METADATA).expect(200);
    world.get(JAR).expect(502);
    assert_eq!(world.kept(), [format!("/{METADATA}")]);
}
