//! One course of things for every format: a name is an upstream's until it is hosted, nobody's for strangers while it is hosted or
//! claimed, and an upstream's again when it is hosted no more.

use super::World;
use serde_json::json;

/// How a format speaks.
pub(crate) struct Scheme<'a> {
    pub(crate) format: &'a str,
    /// Lays down at the upstream a package that is called so.
    pub(crate) offer: &'a dyn Fn(&World, &str),
    /// Publishes a package of that name into the hosted repository.
    pub(crate) publish: &'a dyn Fn(&World, &str),
    /// Takes it away again, entirely.
    pub(crate) withdraw: &'a dyn Fn(&World, &str),
    /// Every address, below a repository called `all`, at which the upstream's package is found.
    pub(crate) paths: &'a dyn Fn(&World, &str) -> Vec<String>,
    /// The name as claims have it.
    pub(crate) claim: &'a dyn Fn(&str) -> String,
}

pub(crate) fn run(scheme: &Scheme<'_>) {
    let world = World::with(scheme.format, &json!({"claimed_names": [(scheme.claim)("grouped")]}));
    let names = ["theirs", "coming", "claimed", "grouped", "apart"];
    names.iter().for_each(|name| (scheme.offer)(&world, name));
    world.set(&world.hosted, &json!({"claimed_names": [(scheme.claim)("claimed")]}));
    world.set(&world.proxy, &json!({"claimed_names": [(scheme.claim)("apart")]}));
    let strangers = world.strangers();
    let see = |name: &str, status: u16| {
        for (who, client) in &strangers {
            for path in (scheme.paths)(&world, name) {
                let answer = client.get(&path);
                assert_eq!(answer.status, status, "{who}: {path}: {}", answer.text());
            }
        }
    };
    // What is claimed is looked for nowhere, by whomever it is claimed.
    for name in ["claimed", "grouped", "apart"] {
        see(name, 404);
        assert_eq!(world.asked(name), 0, "{name}: {:?}", world.upstream.seen());
    }
    // The proxy's own claim holds at its own address too, and a group's does not.
    let at_proxy = |name: &str| {
        let paths = (scheme.paths)(&world, name).into_iter();
        paths
            .map(|path| world.server.anonymous().get(&path.replacen("/all/", "/elsewhere/", 1)))
            .collect::<Vec<_>>()
    };
    at_proxy("apart").into_iter().for_each(|answer| drop(answer.expect(404)));
    assert_eq!(world.asked("apart"), 0);
    at_proxy("grouped").into_iter().for_each(|answer| drop(answer.expect(200)));

    see("theirs", 200);
    see("coming", 200);
    (scheme.publish)(&world, "coming");
    let before = world.asked("coming");
    see("coming", 404);
    assert_eq!(world.asked("coming"), before, "{:?}", world.upstream.seen());
    see("theirs", 200);
    // Who may read what is hosted finds nothing of the upstream's either.
    let member = world.reaching(&[&world.group, &world.proxy, &world.hosted]);
    for path in (scheme.paths)(&world, "coming") {
        let answer = member.get(&path);
        // Its own words may hold what was asked for.
        assert!(answer.status == 404 || !answer.text().contains("99.0"), "{path}: {}", answer.text());
    }
    assert_eq!(world.asked("coming"), before, "{:?}", world.upstream.seen());

    (scheme.withdraw)(&world, "coming");
    see("coming", 200);
}
