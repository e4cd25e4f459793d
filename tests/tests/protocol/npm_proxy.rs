//! npm, pnpm, yarn and bun through a proxy. They install the upstream's packages, and install them
//! again after the upstream is gone.

#[allow(dead_code, reason = "each test uses only some of it")]
use super::npm_upstream;

use npm_upstream::{Part, cached_paths, client, offer, project, proxy, publish, server, tree};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

/// Number of packages in the project.
const PARTS: usize = 36;
/// Returns the proxy's counts of cache look-ups, by their result.
fn counts(api: &Api, proxy: &NpmRepository) -> Value {
    api.call("GET", &format!("/v1/repositories/{}/cache", proxy.id)).expect(200).json()["counts"].clone()
}

#[test]
fn every_client_installs_through_a_proxy_and_again_when_the_upstream_is_gone() {
    let (far, near) = (Server::start(), server());
    let hosted =
        NpmRepository::create_as(&far, "registry", &json!({"settings": {"public": true}, "kind": "hosted"}));
    let parts = tree(PARTS);
    publish(&hosted, &parts);
    let url = hosted.url(&far);
    let clients: Vec<(NpmRepository, Js)> = Tool::ALL
        .into_iter()
        .filter_map(|tool| {
            let proxy = proxy(&near, tool.name(), &url, &json!({}));
            client(&near, tool, &proxy).map(|js| (proxy, js))
        })
        .collect();
    let with_each = |work: &(dyn Fn(&NpmRepository, &Js) + Sync)| {
        std::thread::scope(|scope| {
            for (proxy, js) in &clients {
                scope.spawn(move || work(proxy, js));
            }
        });
    };
    let is_npm = |js: &Js| matches!(js.tool, Tool::Npm10 | Tool::Npm11);
    let is_installed = |js: &Js| {
        for part in &parts {
            assert_eq!(
                js.installed("project", &part.name).as_deref(),
                Some("1.2.3"),
                "{:?} {}",
                js.tool,
                part.name
            );
        }
    };
    with_each(&|_, js| {
        project(js, &parts);
        js.install("project").success();
        is_installed(js);
        if is_npm(js) {
            js.forget("project");
            js.install_locked("project").success();
            is_installed(js);
        }
    });

    drop(far);
    let api = Api::sign_in(&near);
    with_each(&|proxy, js| {
        let before = counts(&api, proxy);
        js.forget("project");
        // The proxy does not cache advisories with the packages, so an audit would need the
        // upstream.
        js.write("project/.npmrc", "audit=false\n");
        js.install_locked("project").success();
        is_installed(js);
        let after = counts(&api, proxy);
        for count in ["misses", "stale", "errors"] {
            assert_eq!(
                before[count], after[count],
                "{:?}: the upstream got requests: {before} {after}",
                js.tool
            );
        }
        assert!(after["hits"].as_u64() > before["hits"].as_u64(), "{before} {after}");
    });
    with_each(&|_, js| {
        if is_npm(js) {
            js.forget("project");
            js.write("project/.npmrc", "audit=true\n");
            js.install_locked("project").success();
            is_installed(js);
        }
    });
}

#[test]
fn a_project_without_a_lock_file_needs_no_further_upstream_requests() {
    let (server, upstream) = (server(), Upstream::start());
    let parts = tree(9);
    parts.iter().for_each(|part| offer(&upstream, std::slice::from_ref(part)));
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let Some(js) = client(&server, Tool::Npm11, &proxy) else { return };
    project(&js, &parts);
    js.run("project", &["install", "--no-audit"]).success();
    assert_eq!(upstream.requests().len(), 2 * parts.len(), "a packument and a tarball for each");

    let Some(fresh) = client(&server, Tool::Npm11, &proxy) else { return };
    project(&fresh, &parts);
    fresh.run("project", &["install", "--no-audit"]).success();
    assert_eq!(upstream.requests().len(), 2 * parts.len());
    upstream.down(true);
    fresh.forget("project");
    fresh.run("project", &["ci", "--no-audit"]).success();
}

#[test]
fn a_tarball_that_differs_from_its_packument_is_not_served() {
    let (server, upstream) = (server(), Upstream::start());
    let part = Part::new("lib", "1.0.0");
    offer(&upstream, std::slice::from_ref(&part));
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let (api, target) = (Api::sign_in(&server), format!("/{}", part.path()));
    let other = Part { dependencies: json!({"evil": "1"}), ..part.clone() }.tarball();
    let padded = [part.tarball(), vec![0; 2_000_000]].concat();
    for (tool, bytes) in [(Tool::Npm10, other), (Tool::Npm11, padded)] {
        upstream.on(&target, Answer::ok(bytes));
        let Some(js) = client(&server, tool, &proxy) else { continue };
        project(&js, std::slice::from_ref(&part));
        let output = js.run("project", &["install", "--no-audit", "--fetch-retries=0"]);
        assert!(!output.success, "{tool:?} installed it:\n{}", output.text);
        assert_eq!(js.installed("project", "lib"), None);
        assert!(
            !cached_paths(&api, &proxy).iter().any(|path| path.ends_with(".tgz")),
            "{:?}",
            cached_paths(&api, &proxy)
        );
    }
    upstream.on(&target, Answer::ok(part.tarball()));
    let Some(js) = client(&server, Tool::Npm11, &proxy) else { return };
    project(&js, std::slice::from_ref(&part));
    js.install("project").success();
    assert_eq!(js.installed("project", "lib").as_deref(), Some("1.0.0"));
}
