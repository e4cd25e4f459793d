//! Proxies of public registries, with real clients. Run on demand by `just live`, never with the
//! other tests. `PACKHOUSE_LIVE_NPM`, `_PYTHON` and `_MAVEN` name the upstreams; a missing one is
//! left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may panic"
)]

use packhouse_tests::clients::Maven;
use packhouse_tests::npm::{Js, Tool};
use packhouse_tests::python::Home;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};

/// A server with a proxy of the upstream that the environment names for this format.
struct Live {
    server: Server,
    id: String,
    url: String,
    token: String,
}

impl Live {
    fn of(format: &str) -> Option<Self> {
        let variable = format!("PACKHOUSE_LIVE_{}", format.to_uppercase());
        let Ok(upstream) = std::env::var(&variable) else {
            skip(&format!("a live {format} upstream"), &format!("{variable} names none"));
            return None;
        };
        let networks = std::env::var("PACKHOUSE_LIVE_NETWORKS").unwrap_or_default();
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", &networks).start();
        let api = Api::sign_in(&server);
        let id = api.create_proxy("live", format, &upstream, &json!({}));
        let token = api.create_token(&[&id], &["read"], None).secret;
        let url = format!("{}/repositories/live", server.base_url());
        Some(Self { server, id, url, token })
    }

    /// Cuts the proxy off from its upstream.
    fn cut_off(&self) {
        let path = format!("/v1/repositories/{}", self.id);
        Api::sign_in(&self.server).patch(&path, &json!({"settings": {"offline": true}})).expect(200);
    }
}

#[test]
fn npm_installs_some_hundred_packages() {
    let Some(live) = Live::of("npm") else { return };
    let client = || Js::new(Tool::Npm11, &live.url, &live.token).unwrap();
    let project = json!({"name": "live", "version": "1.0.0", "dependencies": {
        "express": "^4", "jest": "^29", "eslint": "^9", "webpack": "^5", "typescript": "^5", "@types/node": "^22", "next": "^14",
    }});
    let first = client();
    first.package("project", &project);
    first.run("project", &["install", "--ignore-scripts"]).success();
    let lock = std::fs::read_to_string(first.folder().join("project/package-lock.json")).unwrap();
    let packages = serde_json::from_str::<Value>(&lock).unwrap()["packages"].as_object().unwrap().len();
    assert!(packages > 400, "{packages} packages");

    live.cut_off();
    let second = client();
    second.package("project", &project);
    second.write("project/package-lock.json", &lock);
    second.run("project", &["ci", "--ignore-scripts"]).success();
    assert_eq!(second.installed("project", "next"), first.installed("project", "next"));
}

#[test]
fn pip_installs_projects_with_their_dependencies() {
    let Some(live) = Live::of("python") else { return };
    let (scheme, rest) = live.url.split_once("://").unwrap();
    let index = format!("{scheme}://{}:{}@{rest}/simple/", OWNER.replace('@', "%40"), live.token);
    let install = || {
        let home = Home::with("pip").unwrap();
        let arguments = ["install", "--no-cache-dir", "--target", "installed", "--index-url", &index];
        let arguments = [&arguments[..], &["django", "fastapi[standard]", "pandas", "boto3"]].concat();
        let output = home.run("", "pip", &arguments, &[]).success();
        output.text.lines().find(|line| line.starts_with("Successfully installed")).unwrap().to_owned()
    };
    let first = install();
    assert!(first.contains(" django-") && first.contains(" pydantic-core-"), "{first}");
    live.cut_off();
    assert_eq!(install(), first);
}

#[test]
fn maven_resolves_a_spring_application() {
    let Some(live) = Live::of("maven") else { return };
    let starter = |name: &str| {
        format!(
            "<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-{name}</artifactId></dependency>"
        )
    };
    let dependencies: String = ["web", "data-jpa", "security"].map(starter).concat();
    let pom = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId>\
         <version>3.3.4</version></parent><groupId>org.example</groupId><artifactId>live</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>"
    );
    let settings = format!(
        "<settings><servers><server><id>packhouse</id><username>{OWNER}</username><password>{}</password></server></servers>\
         <mirrors><mirror><id>packhouse</id><mirrorOf>*</mirrorOf><url>{}</url></mirror></mirrors></settings>",
        live.token, live.url
    );
    let resolve = || {
        let maven = Maven::new(&live.token).unwrap();
        maven.write("settings.xml", &settings);
        maven.write("live/pom.xml", &pom);
        let copy = ["--strict-checksums", "dependency:copy-dependencies", "-DoutputDirectory=out"];
        maven.run("live", &copy).success();
        std::fs::read_dir(maven.folder().join("live/out")).unwrap().count()
    };
    let first = resolve();
    assert!(first > 50, "{first} jars");
    live.cut_off();
    assert_eq!(resolve(), first);
}
