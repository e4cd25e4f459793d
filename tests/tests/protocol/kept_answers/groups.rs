//! Groups. A group contains the current content of its members, and each reader sees only the
//! members that this reader may read.

use super::formats::PackageFormat;
use super::play;
use serde_json::json;

#[test]
fn a_publish_into_any_member_is_visible_at_once() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.publish("lib", "1@one");
        repositories.shows("all", "lib", "1@one");
        repositories.publish("lib", "2@two");
        repositories.shows("all", "lib", "1@one 2@two");
        // If several members have a version, the group serves the version of the first member.
        repositories.publish("lib", "3@two");
        repositories.shows("all", "lib", "1@one 2@two 3@two");
        repositories.publish("lib", "3@one");
        repositories.shows("all", "lib", "1@one 2@two 3@one");
        repositories.delete("lib", "3@one");
        repositories.shows("all", "lib", "1@one 2@two 3@two");
        repositories.delete("lib", "2@two 3@two");
        repositories.shows("all", "lib", "1@one");
        repositories.shows("two", "lib", "");
    });
}

#[test]
fn a_name_is_the_upstreams_except_while_it_is_hosted() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.offer("lib", "1@upstream 2@upstream");
        repositories.offer("other", "1@upstream");
        let theirs = "1@upstream 2@upstream";
        repositories.shows("all", "lib", theirs);
        repositories.shows("all", "other", "1@upstream");
        repositories.publish("lib", "3@two");
        repositories.shows("all", "lib", "3@two");
        repositories.shows("proxy", "lib", theirs);
        repositories.shows("all", "other", "1@upstream");
        repositories.delete("lib", "3@two");
        repositories.shows("all", "lib", theirs);
    });
}

#[test]
fn each_reader_sees_only_permitted_content() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.publish("lib", "1@one 2@two");
        repositories.offer("theirs", "1@upstream");
        let [some, others] = [["all", "two"], ["all", "proxy"]].map(|names| repositories.secret_for(&names));
        let [of_some, of_others] =
            [&some, &others].map(|token| repositories.readers_with(Some(token.secret.as_str())));
        let look = |first: &str, second: &str| {
            for _ in 0..2 {
                repositories.shows("all", "lib", &format!("{first} {second}"));
                repositories.shows_to(&of_some, "all", "lib", second);
                repositories.shows_to(&of_others, "all", "lib", "");
                repositories.shows_to(&of_others, "all", "theirs", "1@upstream");
                repositories.shows_to(&of_some, "all", "theirs", "");
            }
        };
        look("1@one", "2@two");
        repositories.publish("lib", "3@two");
        look("1@one", "2@two 3@two");
        repositories.delete("lib", "1@one");
        look("", "2@two 3@two");
        repositories.api.call("DELETE", &format!("/v1/tokens/{}", some.id)).expect(204);
        for reader in &of_some {
            repositories.format.ask(reader, &repositories.called("all"), "lib").expect(401);
        }
    });
}

#[test]
fn changed_members_and_order_apply_at_once() {
    play(&PackageFormat::ALL, |repositories| {
        repositories.publish("lib", "1@one 2@one");
        repositories.publish("lib", "2@two 3@two");
        repositories.offer("theirs", "1@upstream");
        let set = |names: &[&str]| {
            let members: Vec<&str> = names.iter().map(|name| repositories.id(name)).collect();
            repositories.change("all", &json!({"members": members}));
        };
        let sees = |lib: &str, theirs: &str| {
            repositories.shows("all", "lib", lib);
            repositories.shows("all", "theirs", theirs);
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
