//! What is published into a hosted repository, and taken away there, shows in it and in the groups that it is in at once.

use super::formats::Format;
use super::place::same;
use super::play;

const VIEWS: [&str; 2] = ["one", "all"];

#[test]
fn what_is_published_shows_at_once_and_what_is_deleted_does_not() {
    play(&Format::ALL, |place| {
        let shows = |what: &str| VIEWS.iter().for_each(|view| place.shows(view, "lib", what));
        // That there is nothing is an answer as well.
        shows("");
        place.publish("lib", "1@one");
        shows("1@one");
        place.publish("lib", "2@one 3@one");
        shows("1@one 2@one 3@one");
        place.delete("lib", "2@one");
        shows("1@one 3@one");
        place.delete("lib", "1@one 3@one");
        shows("");
        place.publish("lib", "4@one");
        shows("4@one");
    });
}

#[test]
fn what_is_published_beside_a_package_does_not_change_it() {
    play(&Format::ALL, |place| {
        // Names that begin and end alike, on both sides of it in any order.
        let beside = ["lib-a", "li", "alib", "library"];
        place.publish("lib", "1@one 2@one");
        let before = VIEWS.map(|view| place.list(view, "lib"));
        for package in beside {
            place.publish(package, "1@one 3@two");
            for (view, before) in VIEWS.iter().zip(&before) {
                for (after, before) in place.list(view, "lib").iter().zip(before) {
                    same(after, before, &format!("{view}: {package}"));
                }
                place.shows(view, "lib", "1@one 2@one");
            }
            place.shows("one", package, "1@one");
            place.shows("all", package, "1@one 3@two");
        }
        place.delete("lib-a", "1@one");
        place.shows("all", "lib", "1@one 2@one");
        place.shows("all", "lib-a", "3@two");
    });
}
