//! Changed settings. They apply from the next request on, whatever the servers have cached.

use super::formats::{PackageFormat, PackageVersion, versions};
use super::play;
use packhouse_tests::upstream::Upstream;
use serde_json::json;

#[test]
fn a_claim_hides_upstream_content_until_it_is_removed() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.offer("lib", "1@upstream");
        let name = repositories.format.full_name("lib");
        let (visible, hidden) = ("1@upstream", "");
        for (claims, at_proxy) in [("all", visible), ("one", visible), ("proxy", hidden)] {
            repositories.shows("all", "lib", visible);
            repositories.shows("proxy", "lib", visible);
            repositories.set(claims, &json!({"claimed_names": [name]}));
            repositories.shows("all", "lib", hidden);
            repositories.shows("proxy", "lib", at_proxy);
            repositories.set(claims, &json!({"claimed_names": []}));
        }
        repositories.shows("all", "lib", visible);
    });
}

#[test]
fn a_repository_that_is_no_longer_public_needs_a_credential() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.publish("lib", "1@one");
        repositories.offer("theirs", "1@upstream");
        let unauthenticated = repositories.readers_with(None);
        let here = [("one", "lib"), ("proxy", "theirs"), ("all", "lib"), ("all", "theirs")];
        for public in [true, false, true] {
            for name in ["one", "proxy", "all"] {
                repositories.set(name, &json!({"public": public}));
            }
            for (name, package) in here {
                repositories.shows(name, package, if package == "lib" { "1@one" } else { "1@upstream" });
                for reader in unauthenticated.iter().chain(&unauthenticated) {
                    let answer = repositories.format.ask(reader, &repositories.called(name), package);
                    let status = if public { 200 } else { 401 };
                    assert_eq!(answer.status, status, "{:?} {name} {package}", repositories.format);
                }
            }
        }
        // Unauthenticated clients see only the public members of the group.
        repositories.set("one", &json!({"public": false}));
        repositories.shows_to(&unauthenticated, "all", "lib", "");
        repositories.shows_to(&unauthenticated, "all", "theirs", "1@upstream");
        repositories.shows("all", "lib", "1@one");
    });
}

/// A tag list contains images of any age, so the test requests each image itself.
#[test]
fn a_changed_minimum_age_applies_at_once() {
    play(&PackageFormat::ALL, |repositories| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let mut offered = versions("1@upstream 2@upstream");
        offered[1] = PackageVersion { published: now - 3600, ..offered[1].clone() };
        repositories.format.offer(&repositories.upstream, "lib", &offered);
        repositories.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        let sees = |young: bool| {
            for (view, reader) in
                ["proxy", "all", "proxy", "all"].into_iter().zip(repositories.readers().iter().cycle())
            {
                let repository = repositories.called(view);
                repositories.format.file(reader, &repository, "lib", 1).expect(200);
                repositories.format.file(reader, &repository, "lib", 2).expect(if young { 200 } else { 404 });
                if repositories.format != PackageFormat::Images {
                    let listed = repositories.format.listed(reader, &repository, "lib");
                    assert_eq!(listed.unwrap().contains(&2), young, "{:?} {view}", repositories.format);
                }
            }
        };
        for age in [0, 86_400, 60, 7200] {
            repositories.set("proxy", &json!({"min_release_age_s": age}));
            sees(age < 3600);
            sees(age < 3600);
        }
        let name = repositories.format.full_name("lib");
        repositories.set("proxy", &json!({"min_release_age_except": [name]}));
        sees(true);
        sees(true);
        repositories.set("proxy", &json!({"min_release_age_except": []}));
        sees(false);
    });
}

#[test]
fn a_changed_upstream_is_used_at_once() {
    play(&PackageFormat::ALL, |repositories| {
        let other = Upstream::start();
        repositories.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        repositories.offer("lib", "1@upstream");
        repositories.format.offer(&other, "lib", &versions("2@elsewhere"));
        for (url, what) in [(repositories.upstream.url(), "1@upstream"), (other.url(), "2@elsewhere")] {
            repositories.change("proxy", &json!({"upstream": {"url": url}}));
            ["proxy", "all"].iter().for_each(|view| repositories.shows(view, "lib", what));
        }
    });
}
