//! Policies at a proxy and at a group with a proxy. The server refuses a denied package even if it
//! served the package before. It serves the package again after an exception or without the policy.

use packhouse_tests::images::ImageRepository;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Api, MavenRepository, Response, Server};
use serde_json::{Value, json};

use super::{denied, end_exception, enforced, except, refusals, remove, wheel};
use crate::release::Release;

/// A public upstream with `lib 1.0.0` in four formats.
struct Far {
    server: Server,
}

impl Far {
    fn start() -> Far {
        let server = Server::start();
        let public = json!({"kind": "hosted", "settings": {"public": true}});
        let npm = NpmRepository::create_as(&server, "npm", &public);
        let release = Release::new("lib", "1.0.0").manifest_members(&json!({"license": "GPL-3.0-only"}));
        npm.put("lib", &release.document()).expect(201);
        let python = PythonRepository::create_as(&server, "py", &public);
        let file = wheel::wheel_name("lib", "1.0.0");
        python.publish("lib", "1.0.0", &file, &wheel::wheel("lib", "1.0.0", "")).expect(200);
        let maven = MavenRepository::create_with(&server, "jars", &json!({"public": true}));
        maven.put("org/example/lib/1.0.0/lib-1.0.0.jar", "jar").expect(201);
        let images = ImageRepository::create(&server, "images", &json!({"public": true}));
        images.push("lib", "1.0.0", &[b"layer"]).unwrap_or_else(|refused| panic!("{}", refused.text()));
        Far { server }
    }

    fn url(&self, name: &str) -> String {
        format!("{}/repositories/{name}/", self.server.base_url())
    }
}

/// Proxies of the upstream. For npm, Python and Maven the second repository is a group with the
/// proxy.
struct Near {
    npm: [NpmRepository; 2],
    python: [PythonRepository; 2],
    maven: [FormatRepository; 2],
    images: FormatRepository,
}

impl Near {
    fn new(server: &Server, far: &Far) -> Near {
        let kind = |name: &str| json!({"kind": "proxy", "upstream": {"url": far.url(name)}});
        let npm = NpmRepository::create_as(server, "npm", &kind("npm"));
        let all = FormatRepository::create(
            server,
            "npm",
            "npm-all",
            &json!({"kind": "group", "members": [npm.id]}),
            &[&npm.id],
        );
        let npm_all = NpmRepository { name: all.name, id: all.id, token: all.token, client: all.client };
        let python = PythonRepository::proxy(server, "py", &far.url("py"), &json!({}));
        let python_all = PythonRepository::group(server, "py-all", &[&python], &json!({}));
        let maven = FormatRepository::proxy(server, "maven", "jars", &far.url("jars"), &json!({}));
        let maven_all = FormatRepository::group(server, "maven", "jars-all", &[&maven]);
        let upstream = format!("{}/v2/repositories/images", far.server.base_url());
        let images = FormatRepository::proxy(server, "docker", "images", &upstream, &json!({}));
        Near { npm: [npm, npm_all], python: [python, python_all], maven: [maven, maven_all], images }
    }

    /// Returns the response for the file of `lib 1.0.0`, or for its manifest, from each proxy and
    /// each group.
    fn files(&self) -> Vec<(&'static str, Response)> {
        let mut all = Vec::new();
        all.extend(self.npm.iter().map(|npm| ("npm", npm.get("lib/-/lib-1.0.0.tgz"))));
        let file = wheel::wheel_name("lib", "1.0.0");
        all.extend(self.python.iter().map(|python| ("python", python.file("lib", "1.0.0", &file))));
        let jar = "org/example/lib/1.0.0/lib-1.0.0.jar";
        all.extend(self.maven.iter().map(|maven| ("maven", maven.get(jar))));
        let manifest = format!("/v2/repositories/{}/lib/manifests/1.0.0", self.images.name);
        all.push(("docker", self.images.client.get(&manifest)));
        all
    }

    #[track_caller]
    fn are_served(&self, what: &str) {
        for (format, answer) in self.files() {
            assert_eq!(answer.status, 200, "{what}: {format}: {}", answer.text());
        }
    }
}

#[test]
fn a_denied_package_is_refused_through_proxies_and_groups() {
    let far = Far::start();
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&near);
    let all = Near::new(&near, &far);
    all.are_served("without a policy");
    all.are_served("from the cache");
    for (component, settings, words) in refusals() {
        let id = enforced(&api, component, settings, json!("*"));
        for (format, answer) in all.files() {
            let words = match (component, format) {
                ("licences", "npm") => "The licence GPL-3.0-only of lib 1.0.0 is not accepted here",
                // A registry does not state the upload time of an image, so the policy cannot know
                // the age.
                ("least-age", "docker") if answer.text().contains("publication time") => {
                    "publication time of"
                }
                _ => words,
            };
            denied(&answer, words);
        }
        // Lists leave out versions whose files the policy would refuse. npm's list contains no
        // provenance and no licences, so policies about these leave nothing out.
        let listed = |npm: &NpmRepository| npm.get("lib").text().contains("lib-1.0.0.tgz");
        assert_eq!(
            all.npm.each_ref().map(listed),
            [matches!(component, "provenance" | "licences"); 2],
            "{component}"
        );
        // If the format has a field for it, a list names the versions that it leaves out, and the
        // reason.
        if matches!(component, "names" | "least-age") {
            for npm in &all.npm {
                let restrictions = npm.get("lib").expect(200).json()["policyRestrictions"].clone();
                assert!(
                    restrictions["message"].as_str().unwrap().contains(words),
                    "{component}: {restrictions}"
                );
                assert_eq!(restrictions["versions"]["1.0.0"], json!({"name": "lib", "version": "1.0.0"}));
                denied(&npm.get("lib/1.0.0"), words);
            }
            for python in &all.python {
                let page = python.page("lib");
                let yanked = page["files"][0]["yanked"].as_str().unwrap_or_default().to_owned();
                assert!(yanked.contains(words) && yanked.contains("(policy ours)"), "{component}: {page}");
                assert_eq!(page["files"][0]["core-metadata"], false);
            }
        }
        let exception = except(&api, &id, "*lib");
        assert_eq!(all.npm.each_ref().map(listed), [true; 2], "{component}, excepted");
        all.are_served(&format!("{component}, excepted"));
        end_exception(&api, &id, &exception);
        denied(&all.files()[0].1, if component == "licences" { "licence" } else { words });
        remove(&api, &id);
        all.are_served(&format!("without {component}"));
    }
    assert!(near.log().contains("policy refusal"));
}

#[test]
fn a_lookalike_is_refused_and_other_names_pass() {
    let upstream = Server::start();
    let far =
        NpmRepository::create_as(&upstream, "npm", &json!({"kind": "hosted", "settings": {"public": true}}));
    for name in ["acme-utlis", "acme-utils", "other"] {
        far.put(name, &Release::new(name, "1.0.0").document()).expect(201);
    }
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&near);
    let own = NpmRepository::create(&near, "own");
    own.put("acme-utils", &Release::new("acme-utils", "2.0.0").document()).expect(201);
    let kind = json!({"kind": "proxy", "upstream": {"url": far.url(&upstream)}});
    let proxy = NpmRepository::create_as(&near, "npm", &kind);
    enforced(&api, "names", json!({}), json!([proxy.id]));
    let file = |name: &str| proxy.get(&format!("{name}/-/{name}-1.0.0.tgz"));
    denied(&file("acme-utlis"), "acme-utlis looks like acme-utils, which is in use here");
    let log = packhouse_tests::server::eventually("the log contains the reason", || {
        Some(near.log()).filter(|log| log.contains("policy refusal"))
    });
    assert!(log.contains("acme-utlis looks like acme-utils, which is in use here"), "{log}");
    file("other").expect(200);
    file("acme-utils").expect(200);
}

#[test]
fn a_webhook_reports_each_denial_once() {
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&near);
    let receiver = packhouse_tests::upstream::Upstream::start();
    receiver.on("/hook", packhouse_tests::upstream::Answer::ok("taken"));
    let hook =
        json!({"url": format!("{}/hook", receiver.url()), "events": ["policy.denied"], "repositories": "*"});
    api.post("/v1/webhooks", &hook).expect(201);
    let maven = MavenRepository::create(&near, "jars");
    let id = enforced(&api, "names", json!({"publish": ["acme:*"]}), json!("*"));
    for _ in 0..3 {
        denied(&maven.put("org/example/lib/1/lib-1.jar", "x"), "its name must match acme:*");
    }
    let request = packhouse_tests::server::eventually("the hook is called", || {
        receiver.requests().into_iter().find(|request| request.target == "/hook")
    });
    let event: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&event["type"], &event["data"]["policy"]["id"]), (&json!("policy.denied"), &json!(id)));
    assert_eq!(event["data"]["package"], "org.example:lib");
    assert_eq!((&event["data"]["purpose"], &event["data"]["ruling"]), (&json!("publish"), &json!("denied")));
    // The server also delivers the denial of another package. It has delivered the denial of `lib`
    // only once, although the client tried three times.
    denied(&maven.put("org/example/other/1/other-1.jar", "x"), "its name must match acme:*");
    packhouse_tests::server::eventually("the hook is called for the other", || {
        let bodies: Vec<String> = receiver
            .requests()
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect();
        bodies.iter().any(|body| body.contains("org.example:other")).then_some(())
    });
    assert_eq!(receiver.count("/hook"), 2);
}

#[test]
fn docker_gets_a_denial_in_its_own_format() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let images = ImageRepository::create(&server, "images", &json!({}));
    enforced(&api, "names", json!({"publish": ["acme/*"]}), json!("*"));
    let refused = images.push("team/app", "1", &[b"layer"]).expect_err("the push is refused");
    denied(&refused, "team/app may not be published here");
    assert_eq!(refused.json()["errors"][0]["code"], "DENIED");
    images.push("acme/app", "1", &[b"layer"]).unwrap_or_else(|refused| panic!("{}", refused.text()));
}
