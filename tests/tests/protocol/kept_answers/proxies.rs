//! What an upstream changes shows in a proxy, and in a group with it, once what was fetched is fresh no longer, and never later.

use super::formats::{Format, Version, versions};
use super::place::Place;
use super::play;
use packhouse_tests::server::eventually;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const VIEWS: [&str; 2] = ["proxy", "all"];

/// Times are compared in whole seconds by some.
const ROUNDING: Duration = Duration::from_secs(1);

#[test]
fn nothing_of_an_upstream_is_kept_beyond_the_time_that_was_set() {
    play(&Format::ALL, |place| {
        place.offer("beside", "1@upstream");
        for what in ["", "1@upstream", "1@upstream 2@upstream", "1@upstream 2@upstream 3@upstream"] {
            place.offer("lib", what);
            for view in VIEWS {
                place.shows(view, "lib", what);
                place.shows(view, "beside", "1@upstream");
            }
        }
    });
}

#[test]
fn what_is_fresh_stays_and_what_is_fresh_no_longer_is_asked_for() {
    const FRESH: Duration = Duration::from_secs(2);
    play(&Format::ALL, |place| {
        place.set("proxy", &json!({"metadata_ttl_s": FRESH.as_secs()}));
        place.offer("lib", "1@upstream");
        VIEWS.iter().for_each(|view| place.shows(view, "lib", "1@upstream"));
        place.offer("lib", "1@upstream 2@upstream");
        // Whatever was fetched before this moment is not fresh any longer when so much time has passed.
        let changed = Instant::now();
        for view in VIEWS {
            for reader in place.readers() {
                eventually("the upstream's new version", || {
                    let begun = Instant::now();
                    let listed = place.format.listed(&reader, &place.called(view), "lib").unwrap();
                    let late = begun > changed + FRESH + ROUNDING;
                    assert!(!late || listed == [1, 2], "{:?} {view}: kept too long", place.format);
                    (listed == [1, 2]).then_some(())
                });
            }
        }
        VIEWS.iter().for_each(|view| place.shows(view, "lib", "1@upstream 2@upstream"));
    });
}

/// A version that becomes old enough while everything that is known of it is fresh.
#[test]
fn what_becomes_old_enough_shows_from_that_moment() {
    const AGE: u64 = 3600;
    const AHEAD: u64 = 3;
    // Lists of tags are not cut by age: an image itself is looked for.
    play(&Format::ALL, |place| {
        place.set("proxy", &json!({"metadata_ttl_s": 86_400, "min_release_age_s": AGE}));
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs();
        let old_enough = UNIX_EPOCH + Duration::from_secs(now + AHEAD);
        let mut offered = versions("1@upstream 2@upstream");
        offered[1] = Version { published: now + AHEAD - AGE, ..offered[1].clone() };
        place.format.offer(&place.upstream, "lib", &offered);
        for (view, reader) in
            VIEWS.iter().flat_map(|view| place.readers().into_iter().map(move |one| (view, one)))
        {
            eventually("the version that is old enough now", || {
                let begun = SystemTime::now();
                let shown = shows_second(place, &reader, view);
                let ended = SystemTime::now();
                assert!(!shown || ended >= old_enough, "{:?} {view}: too early", place.format);
                let late = begun > old_enough + ROUNDING;
                assert!(shown || !late, "{:?} {view}: too late", place.format);
                shown.then_some(())
            });
        }
    });
}

/// Whether the second version is there, in its list and by itself alike.
#[track_caller]
fn shows_second(place: &Place<'_>, reader: &packhouse_tests::Client, view: &str) -> bool {
    let repository = place.called(view);
    let before = place.format.file(reader, &repository, "lib", 2).status;
    assert!(before == 200 || before == 404, "{before}");
    if place.format == Format::Images {
        return before == 200;
    }
    let listed = place.format.listed(reader, &repository, "lib").unwrap_or_default().contains(&2);
    let after = place.format.file(reader, &repository, "lib", 2).status;
    // It may have become old enough between the three.
    assert!(!listed || after == 200, "listed and not there: {after}");
    assert!(before != 200 || listed, "there and not listed");
    listed && after == 200
}

#[test]
fn what_is_purged_is_asked_for_again() {
    play(&Format::ALL, |place| {
        place.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        place.offer("lib", "1@upstream");
        let both = |what: &str| VIEWS.iter().for_each(|view| place.shows(view, "lib", what));
        both("1@upstream");
        // Without a date of its own, what is fresh for a day stays.
        place.offer("lib", "1@upstream 2@upstream");
        for reader in place.readers() {
            let listed = place.format.listed(&reader, &place.called("proxy"), "lib");
            assert_eq!(listed.unwrap(), [1], "{:?}", place.format);
        }
        let cache = format!("/v1/repositories/{}/cache", place.id("proxy"));
        place.api.call("DELETE", &cache).expect(204);
        both("1@upstream 2@upstream");
    });
}

#[test]
fn what_stood_in_while_an_upstream_failed_does_not_stay_when_it_is_back() {
    play(&Format::ALL, |place| {
        place.offer("lib", "1@upstream");
        VIEWS.iter().for_each(|view| place.shows(view, "lib", "1@upstream"));
        place.upstream.down(true);
        for (view, reader) in
            VIEWS.iter().flat_map(|view| place.readers().into_iter().map(move |one| (view, one)))
        {
            let repository = place.called(view);
            let listed = || place.format.listed(&reader, &repository, "lib");
            assert_eq!((listed(), listed()), (Some(vec![1]), Some(vec![1])), "{repository}");
            place.format.file(&reader, &repository, "lib", 1).expect(200);
        }
        place.upstream.down(false);
        place.offer("lib", "1@upstream 3@upstream");
        let judge = |listed: &[u32]| assert!(listed == [1] || listed == [1, 3], "{listed:?}");
        VIEWS.iter().for_each(|view| place.comes_to_show(view, "lib", "1@upstream 3@upstream", judge));
        VIEWS.iter().for_each(|view| place.shows(view, "lib", "1@upstream 3@upstream"));
    });
}
