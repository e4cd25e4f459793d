//! Readmes of packages. Each client sends a readme, and the server returns the readme of the
//! version that `latest` names.

use super::{publish, with_each};
use crate::release::Release;
use packhouse_tests::npm::{NpmRepository, Tool};
use packhouse_tests::{Request, Server};
use serde_json::{Value, json};

/// Returns `readme` and `readmeFilename` of the packument's top level.
fn served_readme(repository: &NpmRepository, name: &str) -> (String, String) {
    let document = repository.get(name).expect(200).json();
    let text = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
    let versions = document["versions"].as_object().unwrap();
    assert!(
        versions.values().all(|version| version.get("readme").is_none()),
        "a version contains the readme"
    );
    (text("readme"), text("readmeFilename"))
}

fn release(version: &str, readme: &str) -> Release {
    Release::new("lib", version).manifest_members(&json!({"readme": readme}))
}

#[test]
fn the_readme_of_every_client_is_returned() {
    with_each(&Tool::ALL, |_, repository, js| {
        js.package("lib", &json!({"name": "lib", "version": "1.0.0"}));
        js.write("lib/README.md", "# One\n\nof the first\n");
        js.publish("lib").success();
        // Yarn 4 does not send the name of the readme file.
        let file = if js.tool == Tool::Yarn4 { "" } else { "README.md" };
        assert_eq!(
            served_readme(&repository, "lib"),
            ("# One\n\nof the first\n".to_owned(), file.to_owned()),
            "{:?}",
            js.tool
        );
        let short = Request::new("GET", &repository.path("lib"))
            .header("Accept", "application/vnd.npm.install-v1+json");
        assert!(!repository.client.send(short).expect(200).text().contains("of the first"), "{:?}", js.tool);
        js.package("lib", &json!({"name": "lib", "version": "2.0.0"}));
        js.write("lib/README.md", "# Two\n");
        js.publish("lib").success();
        assert_eq!(served_readme(&repository, "lib").0, "# Two\n", "{:?}", js.tool);
        if matches!(js.tool, Tool::Npm10 | Tool::Npm11) {
            assert!(js.run("lib", &["view", "lib", "readme"]).success().text.contains("# Two"));
            js.run("lib", &["deprecate", "lib@2.0.0", "broken"]).success();
            assert_eq!(served_readme(&repository, "lib").0, "# Two\n");
            js.run("lib", &["unpublish", "lib@2.0.0", "--force"]).success();
            assert_eq!(served_readme(&repository, "lib").0, "# One\n\nof the first\n");
        }
    });
}

#[test]
fn a_long_readme_is_truncated_and_survives_a_crash() {
    let mut server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    // The readme is longer than the limit of a record, and longer than the limit of one version's
    // manifest.
    let long = |word: &str| format!("# {word}\n{}", "é".repeat(1_500_000));
    publish(&repository, &release("1.0.0", &long("one"))).expect(201);
    publish(&repository, &release("1.1.0", "# short")).expect(201);
    let moved = |to: &str| {
        let request = Request::new("PUT", &repository.path("-/package/lib/dist-tags/latest"));
        repository
            .client
            .send(request.header("Content-Type", "application/json").body(json!(to).to_string()))
            .expect(201);
    };
    assert_eq!(served_readme(&repository, "lib").0, "# short");
    moved("1.0.0");
    let beginning = |word: &str| {
        let long = long(word);
        long.get(..long.floor_char_boundary(64 << 10)).unwrap().to_owned()
    };
    assert_eq!(served_readme(&repository, "lib").0, beginning("one"));
    server.kill9();
    server.restart();
    let repository = NpmRepository {
        client: server.anonymous().basic(packhouse_tests::server::OWNER, &repository.token.secret),
        ..repository
    };
    assert_eq!(served_readme(&repository, "lib").0, beginning("one"));
    let version: Value = repository.get("lib/1.0.0").expect(200).json();
    assert_eq!((&version["readme"], &version["readmeFilename"]), (&Value::Null, &Value::Null));
}
