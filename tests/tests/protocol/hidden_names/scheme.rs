//! One scenario for every format. A name belongs to an upstream until the hosted repository has it.
//! While the name is hosted or claimed, clients without access see nothing. Afterwards the name
//! belongs to the upstream again.

use super::HiddenNamesFixture;
use serde_json::json;

/// The part of the scenario that depends on the format.
pub(crate) struct Scheme<'a> {
    pub(crate) format: &'a str,
    /// Offers a package with this name at the upstream.
    pub(crate) offer: &'a dyn Fn(&HiddenNamesFixture, &str),
    /// Publishes a package with this name into the hosted repository.
    pub(crate) publish: &'a dyn Fn(&HiddenNamesFixture, &str),
    /// Deletes the package entirely.
    pub(crate) withdraw: &'a dyn Fn(&HiddenNamesFixture, &str),
    /// Returns every path of the upstream's package, below a repository called `all`.
    pub(crate) paths: &'a dyn Fn(&HiddenNamesFixture, &str) -> Vec<String>,
    /// Returns the name in the spelling of claims.
    pub(crate) claim: &'a dyn Fn(&str) -> String,
}

pub(crate) fn run(scheme: &Scheme<'_>) {
    let world =
        HiddenNamesFixture::with(scheme.format, &json!({"claimed_names": [(scheme.claim)("grouped")]}));
    let names = ["theirs", "coming", "claimed", "grouped", "apart"];
    names.iter().for_each(|name| (scheme.offer)(&world, name));
    world.set(&world.hosted, &json!({"claimed_names": [(scheme.claim)("claimed")]}));
    world.set(&world.proxy, &json!({"claimed_names": [(scheme.claim)("apart")]}));
    let without_access = world.without_access();
    let see = |name: &str, status: u16| {
        for (who, client) in &without_access {
            for path in (scheme.paths)(&world, name) {
                let answer = client.get(&path);
                assert_eq!(answer.status, status, "{who}: {path}: {}", answer.text());
            }
        }
    };
    // The group never requests a claimed name from the upstream, whichever repository claims the
    // name.
    for name in ["claimed", "grouped", "apart"] {
        see(name, 404);
        assert_eq!(world.upstream_requests(name), 0, "{name}: {:?}", world.upstream.requests());
    }
    // At the proxy's own address, the proxy's claim applies, and the group's claim does not.
    let at_proxy = |name: &str| {
        let paths = (scheme.paths)(&world, name).into_iter();
        paths
            .map(|path| world.server.anonymous().get(&path.replacen("/all/", "/elsewhere/", 1)))
            .collect::<Vec<_>>()
    };
    at_proxy("apart").into_iter().for_each(|answer| drop(answer.expect(404)));
    assert_eq!(world.upstream_requests("apart"), 0);
    at_proxy("grouped").into_iter().for_each(|answer| drop(answer.expect(200)));

    see("theirs", 200);
    see("coming", 200);
    (scheme.publish)(&world, "coming");
    let before = world.upstream_requests("coming");
    see("coming", 404);
    assert_eq!(world.upstream_requests("coming"), before, "{:?}", world.upstream.requests());
    see("theirs", 200);
    // A client that may read the hosted repository gets no content of the upstream either.
    let member = world.reaching(&[&world.group, &world.proxy, &world.hosted]);
    for path in (scheme.paths)(&world, "coming") {
        let answer = member.get(&path);
        // An error text may repeat the requested path.
        assert!(answer.status == 404 || !answer.text().contains("99.0"), "{path}: {}", answer.text());
    }
    assert_eq!(world.upstream_requests("coming"), before, "{:?}", world.upstream.requests());

    (scheme.withdraw)(&world, "coming");
    see("coming", 200);
}
