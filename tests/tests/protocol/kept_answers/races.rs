//! Races. A request that starts after an acknowledged publish sees that publish, through any
//! server, with many concurrent publishers and readers.

use super::SharedServers;
use super::formats::{PackageFormat, PackageVersion};
use super::place::Repositories;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[test]
fn an_acknowledged_publish_is_visible_to_later_requests() {
    let rounds = if packhouse_tests::long() { 200 } else { 25 };
    for world in [SharedServers::alone(), SharedServers::pair()] {
        for format in PackageFormat::ALL {
            race(&Repositories::new(&world, format), rounds);
        }
    }
}

fn race(repositories: &Repositories<'_>, rounds: u32) {
    let (acknowledged, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let version = |number: u32| PackageVersion { number, ..super::formats::versions("1@one")[0].clone() };
    std::thread::scope(|scope| {
        for (reader, view) in repositories
            .readers()
            .into_iter()
            .flat_map(|reader| ["one", "all"].map(|view| (reader.clone(), repositories.called(view))))
        {
            let (acknowledged, done) = (&acknowledged, &done);
            scope.spawn(move || {
                let mut looks = 0_u32;
                // Reads at least once, even if all publishes have ended.
                while !done.load(Ordering::SeqCst) || looks == 0 {
                    let floor = acknowledged.load(Ordering::SeqCst);
                    let listed = repositories.format.listed(&reader, &view, "lib").unwrap_or_default();
                    let newest = listed.last().copied().unwrap_or_default();
                    assert!(newest >= floor, "{view} ends with {newest} though {floor} was acknowledged");
                    assert_eq!(listed, (1..=newest).collect::<Vec<_>>(), "{view}");
                    if floor > 0 {
                        let answer = repositories.format.file(&reader, &view, "lib", floor).expect(200);
                        assert!(
                            answer.body == repositories.format.content("lib", &version(floor)),
                            "{view} {floor}"
                        );
                    }
                    looks += 1;
                }
            });
        }
        // Publishes other packages, whose changes must not affect the readers.
        let beside = |name: &'static str| {
            let (done, writer) = (&done, repositories.writer());
            let repository = repositories.called("one");
            move || {
                (1..).take_while(|_| !done.load(Ordering::SeqCst)).for_each(|number| {
                    repositories.format.publish(&writer, &repository, name, &version(number));
                });
            }
        };
        scope.spawn(beside("beside"));
        scope.spawn(beside("li"));
        let publishing = std::panic::AssertUnwindSafe(|| {
            for number in 1..=rounds {
                repositories.format.publish(
                    &repositories.writer(),
                    &repositories.called("one"),
                    "lib",
                    &version(number),
                );
                acknowledged.store(number, Ordering::SeqCst);
            }
        });
        let published = std::panic::catch_unwind(publishing);
        done.store(true, Ordering::SeqCst);
        published.expect("all are published");
    });
}
