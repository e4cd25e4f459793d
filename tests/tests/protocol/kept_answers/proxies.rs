//! Proxies. A change at an upstream becomes visible in a proxy, and in a group with the proxy, as
//! soon as the cached copy is stale.

use super::formats::{PackageFormat, PackageVersion, versions};
use super::place::Repositories;
use super::play;
use packhouse_tests::server::eventually;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const VIEWS: [&str; 2] = ["proxy", "all"];

/// Tolerance of the checks, because the server compares some times in whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);

#[test]
fn upstream_content_is_not_cached_beyond_its_configured_time() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.offer("beside", "1@upstream");
        for what in ["", "1@upstream", "1@upstream 2@upstream", "1@upstream 2@upstream 3@upstream"] {
            repositories.offer("lib", what);
            for view in VIEWS {
                repositories.shows(view, "lib", what);
                repositories.shows(view, "beside", "1@upstream");
            }
        }
    });
}

#[test]
fn fresh_copies_are_served_and_stale_ones_are_revalidated() {
    const FRESH: Duration = Duration::from_secs(2);
    play(&PackageFormat::ALL, |repositories| {
        repositories.set("proxy", &json!({"metadata_ttl_s": FRESH.as_secs()}));
        repositories.offer("lib", "1@upstream");
        VIEWS.iter().for_each(|view| repositories.shows(view, "lib", "1@upstream"));
        repositories.offer("lib", "1@upstream 2@upstream");
        // Everything that the server fetched before this moment is stale once the freshness time
        // has passed.
        let changed = Instant::now();
        for view in VIEWS {
            for reader in repositories.readers() {
                eventually("the upstream's new version", || {
                    let begun = Instant::now();
                    let listed =
                        repositories.format.listed(&reader, &repositories.called(view), "lib").unwrap();
                    let late = begun > changed + FRESH + ROUNDING;
                    assert!(!late || listed == [1, 2], "{:?} {view}: cached too long", repositories.format);
                    (listed == [1, 2]).then_some(())
                });
            }
        }
        VIEWS.iter().for_each(|view| repositories.shows(view, "lib", "1@upstream 2@upstream"));
    });
}

/// A version becomes old enough while all cached copies are still fresh. The proxy must offer it
/// then.
#[test]
fn a_version_is_visible_once_it_is_old_enough() {
    const AGE: u64 = 3600;
    const AHEAD: u64 = 3;
    // A tag list contains images of any age, so the test requests the image itself.
    play(&PackageFormat::ALL, |repositories| {
        repositories.set("proxy", &json!({"metadata_ttl_s": 86_400, "min_release_age_s": AGE}));
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs();
        let old_enough = UNIX_EPOCH + Duration::from_secs(now + AHEAD);
        let mut offered = versions("1@upstream 2@upstream");
        offered[1] = PackageVersion { published: now + AHEAD - AGE, ..offered[1].clone() };
        repositories.format.offer(&repositories.upstream, "lib", &offered);
        for (view, reader) in
            VIEWS.iter().flat_map(|view| repositories.readers().into_iter().map(move |one| (view, one)))
        {
            eventually("the version that is old enough now", || {
                let begun = SystemTime::now();
                let is_listed = shows_second(repositories, &reader, view);
                let ended = SystemTime::now();
                assert!(!is_listed || ended >= old_enough, "{:?} {view}: too early", repositories.format);
                let late = begun > old_enough + ROUNDING;
                assert!(is_listed || !late, "{:?} {view}: too late", repositories.format);
                is_listed.then_some(())
            });
        }
    });
}

/// Returns `true` if the second version exists both in the list and as a file.
#[track_caller]
fn shows_second(repositories: &Repositories<'_>, reader: &packhouse_tests::Client, view: &str) -> bool {
    let repository = repositories.called(view);
    let before = repositories.format.file(reader, &repository, "lib", 2).status;
    assert!(before == 200 || before == 404, "{before}");
    if repositories.format == PackageFormat::Images {
        return before == 200;
    }
    let listed = repositories.format.listed(reader, &repository, "lib").unwrap_or_default().contains(&2);
    let after = repositories.format.file(reader, &repository, "lib", 2).status;
    // The version may become old enough between the three requests.
    assert!(!listed || after == 200, "listed but not served: {after}");
    assert!(before != 200 || listed, "served but not listed");
    listed && after == 200
}

#[test]
fn purged_content_is_requested_again() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.set("proxy", &json!({"metadata_ttl_s": 86_400}));
        repositories.offer("lib", "1@upstream");
        let both = |what: &str| VIEWS.iter().for_each(|view| repositories.shows(view, "lib", what));
        both("1@upstream");
        // The copy is fresh for a day, so the change becomes visible only by the purge.
        repositories.offer("lib", "1@upstream 2@upstream");
        for reader in repositories.readers() {
            let listed = repositories.format.listed(&reader, &repositories.called("proxy"), "lib");
            assert_eq!(listed.unwrap(), [1], "{:?}", repositories.format);
        }
        let cache = format!("/v1/repositories/{}/cache", repositories.id("proxy"));
        repositories.api.call("DELETE", &cache).expect(204);
        both("1@upstream 2@upstream");
    });
}

#[test]
fn a_stale_response_during_a_failure_is_not_cached_after_recovery() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.offer("lib", "1@upstream");
        VIEWS.iter().for_each(|view| repositories.shows(view, "lib", "1@upstream"));
        repositories.upstream.down(true);
        for (view, reader) in
            VIEWS.iter().flat_map(|view| repositories.readers().into_iter().map(move |one| (view, one)))
        {
            let repository = repositories.called(view);
            let listed = || repositories.format.listed(&reader, &repository, "lib");
            assert_eq!((listed(), listed()), (Some(vec![1]), Some(vec![1])), "{repository}");
            repositories.format.file(&reader, &repository, "lib", 1).expect(200);
        }
        repositories.upstream.down(false);
        repositories.offer("lib", "1@upstream 3@upstream");
        let judge = |listed: &[u32]| assert!(listed == [1] || listed == [1, 3], "{listed:?}");
        VIEWS.iter().for_each(|view| repositories.comes_to_show(view, "lib", "1@upstream 3@upstream", judge));
        VIEWS.iter().for_each(|view| repositories.shows(view, "lib", "1@upstream 3@upstream"));
    });
}
