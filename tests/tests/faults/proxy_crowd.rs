//! Many clients of upstreams that hang. The server still serves clients that need no upstream.
//! Waiting clients get their answer once the upstreams answer.

use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{MavenRepository, digests};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of clients of each of the two upstreams. Both together exceed the number of concurrent
/// calls of a plugin.
const CLIENTS: usize = 160;
/// Maximum number of concurrent requests that the server sends to one upstream.
const PLACES: usize = 32;
const ROUNDS: usize = 20;
/// Time limit of a read that needs no upstream. Without a free slot, the server would refuse the
/// read after 2 s.
const DEADLINE: Duration = Duration::from_secs(10);

fn file(number: usize) -> String {
    format!("org/example/n{number}/1/n{number}-1.jar")
}

/// Makes the upstream hang: for half of the files it sends nothing at all. For the other half it
/// sends metadata that stops in the middle.
fn hang(upstream: &Upstream, gate: &Gate) {
    for number in 0..CLIENTS {
        let (path, text) = (file(number), format!("file {number}"));
        upstream.on(&format!("/{path}"), Answer::ok(text.clone()).silent(gate));
        upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(text.as_bytes())));
        let document = metadata(&["1"]);
        let path = format!("/org/example/n{number}/maven-metadata.xml");
        upstream.on(&path, Answer::ok(document.clone()).gated(document.len() / 2, gate));
    }
}

#[test]
fn hanging_upstreams_delay_no_other_request() {
    let patient = [("PACKHOUSE_UPSTREAM_IDLE_MS", "60000")];
    let world = World::with(&patient, &json!({}));
    let (gate, other) = (Gate::new(), Upstream::start());
    hang(&world.upstream, &gate);
    hang(&other, &gate);
    let second = world.api.create_proxy("second", "maven", &other.url(), &json!({}));
    let token = world.api.create_token(&[&world.id, &second], &["read"], None);
    let client = world.server.anonymous().basic(OWNER, &token.secret);
    let hosted = MavenRepository::create(&world.server, "hosted");
    hosted.put(JAR, "hosted").expect(201);
    world.offer_metadata(&["kept"], |answer| answer);
    let cached = world.get(METADATA).expect(200).text();

    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            for repository in ["proxy", "second"] {
                let (client, served) = (&client, &served);
                scope.spawn(move || {
                    let path = match number % 2 {
                        0 => file(number),
                        _ => format!("org/example/n{number}/maven-metadata.xml"),
                    };
                    client.get(&format!("/repositories/{repository}/{path}")).expect(200);
                    served.fetch_add(1, Ordering::SeqCst);
                });
            }
        }
        // Each upstream has its maximum of requests; the other requests had time to queue up.
        let is_busy = |upstream: &Upstream| upstream.requests().len() >= PLACES;
        eventually("both hang", || (is_busy(&world.upstream) && is_busy(&other)).then_some(()));
        let mut times = Vec::new();
        for number in 0..ROUNDS {
            let began = Instant::now();
            assert_eq!(hosted.get(JAR).expect(200).text(), "hosted");
            assert_eq!(
                world.get(METADATA).expect(200).text(),
                cached,
                "a cached file needs no upstream either"
            );
            hosted.put(&format!("org/example/up/{number}/up-{number}.jar"), "new").expect(201);
            times.push(began.elapsed());
            assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
        }
        times.sort_unstable();
        println!(
            "hosted beside {} that hang: median {:?}, worst {:?}",
            2 * CLIENTS,
            times[ROUNDS / 2],
            times[ROUNDS - 1]
        );
        assert_eq!(served.load(Ordering::SeqCst), 0, "all of them still wait");
        gate.open();
    });
    assert_eq!(served.load(Ordering::SeqCst), 2 * CLIENTS, "none was refused");
}
