//! Hosted repositories. Publishes and deletions are visible at once, in the repository and in its
//! groups.

use super::formats::PackageFormat;
use super::place::same;
use super::play;

const VIEWS: [&str; 2] = ["one", "all"];

#[test]
fn publishes_and_deletions_are_visible_at_once() {
    play(&PackageFormat::ALL, |repositories| {
        let shows = |what: &str| VIEWS.iter().for_each(|view| repositories.shows(view, "lib", what));
        // The server caches the response about a missing package too.
        shows("");
        repositories.publish("lib", "1@one");
        shows("1@one");
        repositories.publish("lib", "2@one 3@one");
        shows("1@one 2@one 3@one");
        repositories.delete("lib", "2@one");
        shows("1@one 3@one");
        repositories.delete("lib", "1@one 3@one");
        shows("");
        repositories.publish("lib", "4@one");
        shows("4@one");
    });
}

#[test]
fn other_packages_do_not_change_a_package() {
    play(&PackageFormat::ALL, |repositories| {
        // These names share a beginning or an end with `lib`, and sort before and after it.
        let beside = ["lib-a", "li", "alib", "library"];
        repositories.publish("lib", "1@one 2@one");
        let before = VIEWS.map(|view| repositories.list(view, "lib"));
        for package in beside {
            repositories.publish(package, "1@one 3@two");
            for (view, before) in VIEWS.iter().zip(&before) {
                for (after, before) in repositories.list(view, "lib").iter().zip(before) {
                    same(after, before, &format!("{view}: {package}"));
                }
                repositories.shows(view, "lib", "1@one 2@one");
            }
            repositories.shows("one", package, "1@one");
            repositories.shows("all", package, "1@one 3@two");
        }
        repositories.delete("lib-a", "1@one");
        repositories.shows("all", "lib", "1@one 2@one");
        repositories.shows("all", "lib-a", "3@two");
    });
}
