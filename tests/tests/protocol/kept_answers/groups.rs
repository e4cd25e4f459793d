//! A group shows what its members have at this moment, to each reader what that one may see.

use super::formats::Format;
use super::play;
use serde_json::json;

#[test]
fn what_is_published_into_any_member_shows_at_once() {
    play(&Format::ALL, |place| {
        place.publish("lib", "1@one");
        place.shows("all", "lib", "1@one");
        place.publish("lib", "2@two");
        place.shows("all", "lib", "1@one 2@two");
        // The first member that has a version is the one whose version it is.
        place.publish("lib", "3@two");
        place.shows("all", "lib", "1@one 2@two 3@two");
        place.publish("lib", "3@one");
        place.shows("all", "lib", "1@one 2@two 3@one");
        place.delete("lib", "3@one");
        place.shows("all", "lib", "1@one 2@two 3@two");
        place.delete("lib", "2@two 3@two");
        place.shows("all", "lib", "1@one");
        place.shows("two", "lib", "");
    });
}

#[test]
fn a_name_is_the_upstreams_until_it_is_published_here_and_again_when_it_is_deleted() {
    play(&Format::ALL, |place| {
        place.offer("lib", "1@upstream 2@upstream");
        place.offer("other", "1@upstream");
        let theirs = "1@upstream 2@upstream";
        place.shows("all", "lib", theirs);
        place.shows("all", "other", "1@upstream");
        place.publish("lib", "3@two");
        place.shows("all", "lib", "3@two");
        place.shows("proxy", "lib", theirs);
        place.shows("all", "other", "1@upstream");
        place.delete("lib", "3@two");
        place.shows("all", "lib", theirs);
    });
}

#[test]
fn each_reader_sees_what_that_one_may_see() {
    play(&Format::ALL, |place| {
        place.publish("lib", "1@one 2@two");
        place.offer("theirs", "1@upstream");
        let [some, others] = [["all", "two"], ["all", "proxy"]].map(|names| place.secret_for(&names));
        let [of_some, of_others] =
            [&some, &others].map(|token| place.readers_with(Some(token.secret.as_str())));
        let look = |first: &str, second: &str| {
            for _ in 0..2 {
                place.shows("all", "lib", &format!("{first} {second}"));
                place.shows_to(&of_some, "all", "lib", second);
                place.shows_to(&of_others, "all", "lib", "");
                place.shows_to(&of_others, "all", "theirs", "1@upstream");
                place.shows_to(&of_some, "all", "theirs", "");
            }
        };
        look("1@one", "2@two");
        place.publish("lib", "3@two");
        look("1@one", "2@two 3@two");
        place.delete("lib", "1@one");
        look("", "2@two 3@two");
        place.api.call("DELETE", &format!("/v1/tokens/{}", some.id)).expect(204);
        for reader in &of_some {
            place.format.ask(reader, &place.called("all"), "lib").expect(401);
        }
    });
}

#[test]
fn other_members_in_another_order_are_another_group_at_once() {
    play(&Format::ALL, |place| {
        place.publish("lib", "1@one 2@one");
        place.publish("lib", "2@two 3@two");
        place.offer("theirs", "1@upstream");
        let set = |names: &[&str]| {
            let members: Vec<&str> = names.iter().map(|name| place.id(name)).collect();
            place.change("all", &json!({"members": members}));
        };
        let sees = |lib: &str, theirs: &str| {
            place.shows("all", "lib", lib);
            place.shows("all", "theirs", theirs);
        };
        sees("1@one 2@one 3@two", "1@upstream");
        set(&["two", "one", "proxy"]);
        sees("1@one 2@two 3@two", "1@upstream");
        set(&["two", "proxy"]);
        sees("2@two 3@two", "1@upstream");
        set(&["one"]);
        sees("1@one 2@one", "");
        set(&["one", "two", "proxy"]);
        sees("1@one 2@one 3@two", "1@upstream");
    });
}
