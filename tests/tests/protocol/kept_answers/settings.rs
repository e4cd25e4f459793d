//! What is set for a repository holds from the next request, whatever was kept before.

use super::formats::{Format, Version, versions};
use super::play;
use packhouse_tests::upstream::Upstream;
use serde_json::json;

#[test]
fn a_claim_hides_what_an_upstream_has_and_its_end_shows_it_again() {
    play(&Format::ALL, |place| {
        place.offer("lib", "1@upstream");
        let name = place.format.full_name("lib");
        let (shown, hidden) = ("1@upstream", "");
        for (claims, at_proxy) in [("all", shown), ("one", shown), ("proxy", hidden)] {
            place.shows("all", "lib", shown);
            place.shows("proxy", "lib", shown);
            place.set(claims, &json!({"claimed_names": [name]}));
            place.shows("all", "lib", hidden);
            place.shows("proxy", "lib", at_proxy);
            place.set(claims, &json!({"claimed_names": []}));
        }
        place.shows("all", "lib", shown);
    });
}

#[test]
fn what_is_public_no_more_is_shown_to_nobody_without_a_credential() {
    play(&Format::ALL, |place| {
        place.publish("lib", "1@one");
        place.offer("theirs", "1@upstream");
        let strangers = place.readers_with(None);
        let here = [("one", "lib"), ("proxy", "theirs"), ("all", "lib"), ("all", "theirs")];
        for public in [true, false, true] {
            for name in ["one", "proxy", "all"] {
                place.set(name, &json!({"public": public}));
            }
            for (name, package) in here {
                place.shows(name, package, if package == "lib" { "1@one" } else { "1@upstream" });
                for stranger in strangers.iter().chain(&strangers) {
                    let answer = place.format.ask(stranger, &place.called(name), package);
                    let status = if public { 200 } else { 401 };
                    assert_eq!(answer.status, status, "{:?} {name} {package}", place.format);
                }
            }
        }
        // Of the group a stranger sees what is public.
        place.set("one", &json!({"public": false}));
        place.shows_to(&strangers, "all", "lib", "");
        place.shows_to(&strangers, "all", "theirs", "1@upstream");
        place.shows("all", "lib", "1@one");
    });
}

/// Lists of tags are not cut by age, so images are looked at one by one.
#[test]
fn another_least_age_holds_at_once() {
    play(&Format::ALL, |place| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let mut offered = versions("1@upstream 2@upstream");
        offered[1] = Version { published: now - 3600, ..offered[1].clone() };
        place.format.offer(&place.upstream, "lib", &offered);
        place.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        let sees = |young: bool| {
            for (view, reader) in
                ["proxy", "all", "proxy", "all"].into_iter().zip(place.readers().iter().cycle())
            {
                let repository = place.called(view);
                place.format.file(reader, &repository, "lib", 1).expect(200);
                place.format.file(reader, &repository, "lib", 2).expect(if young { 200 } else { 404 });
                if place.format != Format::Images {
                    let listed = place.format.listed(reader, &repository, "lib");
                    assert_eq!(listed.unwrap().contains(&2), young, "{:?} {view}", place.format);
                }
            }
        };
        for age in [0, 86_400, 60, 7200] {
            place.set("proxy", &json!({"min_release_age_s": age}));
            sees(age < 3600);
            sees(age < 3600);
        }
        let name = place.format.full_name("lib");
        place.set("proxy", &json!({"min_release_age_except": [name]}));
        sees(true);
        sees(true);
        place.set("proxy", &json!({"min_release_age_except": []}));
        sees(false);
    });
}

#[test]
fn another_upstream_is_asked_at_once() {
    play(&Format::ALL, |place| {
        let other = Upstream::start();
        place.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        place.offer("lib", "1@upstream");
        place.format.offer(&other, "lib", &versions("2@elsewhere"));
        for (url, what) in [(place.upstream.url(), "1@upstream"), (other.url(), "2@elsewhere")] {
            place.change("proxy", &json!({"upstream": {"url": url}}));
            ["proxy", "all"].iter().for_each(|view| place.shows(view, "lib", what));
        }
    });
}
