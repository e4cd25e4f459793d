//! Publishes that a policy denies, in four formats. Every format gets the same text, and the server
//! stores nothing.

use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Api, MavenRepository, Response, Server};
use serde_json::json;

use super::{denied, end_exception, enforced, except, mode, refusals, remove, wheel};
use crate::release::Release;

/// Repositories to which the test publishes versions of `lib`. The licence is GPL-3.0-only if the
/// format states a licence.
struct Publishers {
    npm: NpmRepository,
    python: PythonRepository,
    maven: MavenRepository,
    images: ImageRepository,
}

impl Publishers {
    fn new(server: &Server) -> Publishers {
        Publishers {
            npm: NpmRepository::create(server, "npm"),
            python: PythonRepository::create(server, "py"),
            maven: MavenRepository::create(server, "jars"),
            images: ImageRepository::create(server, "images", &json!({})),
        }
    }

    fn npm(&self, version: &str) -> Response {
        let release = Release::new("lib", version).manifest_members(&json!({"license": "GPL-3.0-only"}));
        self.npm.put("lib", &release.document())
    }

    fn python(&self, version: &str) -> Response {
        let more = "License-Expression: GPL-3.0-only\n";
        let file = wheel::wheel_name("lib", version);
        self.python.publish("lib", version, &file, &wheel::wheel("lib", version, more))
    }

    fn maven(&self, version: &str) -> Response {
        self.maven.put(&format!("org/example/lib/{version}/lib-{version}.jar"), version)
    }

    fn image(&self, version: &str) -> Response {
        let config = b"{}";
        self.images.push_blob("lib", config).expect(201);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": 2},
            "annotations": {"org.opencontainers.image.licenses": "GPL-3.0-only"},
        });
        self.images.push_manifest("lib", version, MANIFEST, &manifest.to_string())
    }

    fn all(&self, version: &str) -> [(&'static str, Response, u16); 4] {
        [
            ("npm", self.npm(version), 201),
            ("python", self.python(version), 200),
            ("maven", self.maven(version), 201),
            ("docker", self.image(version), 201),
        ]
    }

    /// Returns whether this version exists, for each format.
    fn there(&self, version: &str) -> [bool; 4] {
        let page = self.python.ask("lib").text();
        [
            self.npm.get("lib").text().contains(&format!("lib-{version}.tgz")),
            page.contains(&wheel::wheel_name("lib", version)),
            self.maven.get(&format!("org/example/lib/{version}/lib-{version}.jar")).status == 200,
            self.images.get(&format!("lib/manifests/{version}")).status == 200,
        ]
    }
}

#[test]
fn a_denied_version_is_not_published_without_an_exception() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let publishers = Publishers::new(&server);
    for (number, (component, settings, words)) in refusals().into_iter().enumerate() {
        if component == "least-age" {
            continue;
        }
        let version = format!("1.{number}.0");
        let id = enforced(&api, component, settings, json!("*"));
        for (format, answer, good) in publishers.all(&version) {
            // A jar does not state a licence, and at this moment its POM is not yet published.
            let words =
                if (component, format) == ("licences", "maven") { "states no licence" } else { words };
            denied(&answer, words);
            assert!(answer.text().contains("policy_denied") && answer.status != good, "{format}");
        }
        assert_eq!(publishers.there(&version), [false; 4], "{component}");
        let exception = except(&api, &id, "*lib");
        for (format, answer, good) in publishers.all(&version) {
            assert_eq!(answer.status, good, "{component} {format}: {}", answer.text());
        }
        assert_eq!(publishers.there(&version), [true; 4], "{component}");
        end_exception(&api, &id, &exception);
        denied(&publishers.npm(&format!("2.{number}.0")), words);
        // A policy in warn mode reports the publish and does not refuse it.
        mode(&api, &id, "warn");
        publishers.npm(&format!("2.{number}.0")).expect(201);
        remove(&api, &id);
    }
    // A version is new when it is published, so a policy about the age does not refuse publishes.
    let id = enforced(&api, "least-age", json!({"hours": 24}), json!("*"));
    for (format, answer, good) in publishers.all("3.0.0") {
        assert_eq!(answer.status, good, "{format}: {}", answer.text());
    }
    remove(&api, &id);
    let log = server.log();
    for message in ["policy refusal", "policy warning"] {
        assert!(log.contains(message), "{message} is not in the log");
    }
}

#[test]
fn a_choice_of_licences_passes_if_one_does_and_crates_are_judged_too() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let npm = NpmRepository::create(&server, "npm");
    let other = NpmRepository::create(&server, "other");
    enforced(&api, "licences", json!({"allow": ["MIT", "Apache-*"], "unknown": "deny"}), json!([npm.id]));
    let publish = |repository: &NpmRepository, name: &str, license: serde_json::Value| {
        repository
            .put(name, &Release::new(name, "1.0.0").manifest_members(&json!({"license": license})).document())
    };
    publish(&npm, "choice", json!("(MIT OR GPL-3.0-only)")).expect(201);
    publish(&npm, "old", json!({"type": "MIT", "url": "x"})).expect(201);
    denied(&publish(&npm, "both", json!("MIT AND GPL-3.0-only")), "The licence GPL-3.0-only of both 1.0.0");
    denied(&publish(&npm, "file", json!("SEE LICENSE IN x")), "is not known");
    publish(&other, "both", json!("MIT AND GPL-3.0-only")).expect(201);
    let details = api.call("GET", &format!("/v1/repositories/{}/packages/choice/versions/1.0.0", npm.id));
    assert_eq!(details.expect(200).json()["properties"]["license"], "(MIT OR GPL-3.0-only)");
    let generic = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    generic.put("a/1/b.txt", "b").expect(201);
}

#[test]
fn a_poms_licence_applies_to_files_published_after_it() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let settings = json!({"allow": ["MIT", "Apache-*"], "unknown": "deny"});
    enforced(&api, "licences", settings, json!("*"));
    let put = |version: &str, tail: &str, content: &str| {
        maven.put(&format!("org/example/lib/{version}/lib-{version}{tail}"), content)
    };
    let pom = |licences: &str| format!("<project><licenses>{licences}</licenses></project>");
    let named = |name: &str| format!("<license><name>{name}</name></license>");
    let apache =
        "<license><name>ours</name><url>https://www.apache.org/licenses/LICENSE-2.0.txt</url></license>";
    for (version, licences, license) in [
        ("1", named("The MIT License"), "MIT"),
        ("2", apache.to_owned(), "Apache-2.0"),
        ("3", named("GPL-3.0-only") + &named("MIT"), "GPL-3.0-only OR MIT"),
    ] {
        denied(&put(version, ".jar", "x"), "states no licence");
        put(version, ".pom", &pom(&licences)).expect(201);
        put(version, ".jar", "x").expect(201);
        put(version, "-sources.jar", "y").expect(201);
        let path = format!("/v1/repositories/{}/packages/org.example%3Alib/versions/{version}", maven.id);
        assert_eq!(api.call("GET", &path).expect(200).json()["properties"]["license"], license);
    }
    denied(&put("4", ".pom", &pom(&named("GPL-3.0-only"))), "The licence GPL-3.0-only of org.example:lib 4");
    denied(&put("5", ".pom", &pom(&named("Our own terms"))), "is not known: Our own terms");
    let bill = api.call("GET", &format!("/v1/sbom?repository={}", maven.id)).expect(200).text();
    assert!(bill.contains("GPL-3.0-only OR MIT") && bill.contains("Apache-2.0"), "{bill}");
}
