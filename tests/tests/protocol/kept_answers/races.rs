//! Whoever asks after a publish was acknowledged sees it, however many publish and ask at that moment, through whichever server.

use super::World;
use super::formats::{Format, Version};
use super::place::Place;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[test]
fn an_acknowledged_publish_is_seen_by_whoever_asks_then() {
    let rounds = if packhouse_tests::long() { 200 } else { 25 };
    for world in [World::alone(), World::pair()] {
        for format in Format::ALL {
            race(&Place::new(&world, format), rounds);
        }
    }
}

fn race(place: &Place<'_>, rounds: u32) {
    let (acknowledged, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let version = |number: u32| Version { number, ..super::formats::versions("1@one")[0].clone() };
    std::thread::scope(|scope| {
        for (reader, view) in place
            .readers()
            .into_iter()
            .flat_map(|reader| ["one", "all"].map(|view| (reader.clone(), place.called(view))))
        {
            let (acknowledged, done) = (&acknowledged, &done);
            scope.spawn(move || {
                let mut looks = 0_u32;
                // Once more at the end.
                while !done.load(Ordering::SeqCst) || looks == 0 {
                    let floor = acknowledged.load(Ordering::SeqCst);
                    let listed = place.format.listed(&reader, &view, "lib").unwrap_or_default();
                    let newest = listed.last().copied().unwrap_or_default();
                    assert!(newest >= floor, "{view} ends with {newest} though {floor} was acknowledged");
                    assert_eq!(listed, (1..=newest).collect::<Vec<_>>(), "{view}");
                    if floor > 0 {
                        let answer = place.format.file(&reader, &view, "lib", floor).expect(200);
                        assert!(
                            answer.body == place.format.content("lib", &version(floor)),
                            "{view} {floor}"
                        );
                    }
                    looks += 1;
                }
            });
        }
        // Publishes of other packages, which are none of the readers' business.
        let beside = |name: &'static str| {
            let (done, writer) = (&done, place.writer());
            let repository = place.called("one");
            move || {
                (1..).take_while(|_| !done.load(Ordering::SeqCst)).for_each(|number| {
                    place.format.publish(&writer, &repository, name, &version(number));
                });
            }
        };
        scope.spawn(beside("beside"));
        scope.spawn(beside("li"));
        let publishing = std::panic::AssertUnwindSafe(|| {
            for number in 1..=rounds {
                place.format.publish(&place.writer(), &place.called("one"), "lib", &version(number));
                acknowledged.store(number, Ordering::SeqCst);
            }
        });
        let published = std::panic::catch_unwind(publishing);
        done.store(true, Ordering::SeqCst);
        published.expect("all are published");
    });
}
