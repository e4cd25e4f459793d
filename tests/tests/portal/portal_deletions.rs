//! Delete buttons on the portal's pages. One click deletes nothing. `portal_browser` clicks the
//! buttons in a browser.

use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, MavenRepository, Server, checkout};
use serde_json::json;

/// The form field that makes the server delete.
const DELETES: &str = "name=\"do\" value=\"delete\"";

#[test]
fn the_first_click_on_a_delete_button_only_opens_a_confirmation() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "releases");
    repository.put("org/example/a/1.0/a-1.0.jar", "a jar").expect(201);
    let mut owner = Person::owner(&server);
    let package = "/repositories/releases/packages/org.example%3Aa";
    for path in ["/repositories/releases/settings", package, &format!("{package}/versions/1.0")] {
        let page = owner.get(path).expect(200).text();
        let (before, rest) =
            page.split_once("<details class=\"twice\">").unwrap_or_else(|| panic!("{path}: {page}"));
        let (within, after) = rest.split_once("</details>").unwrap();
        assert!(within.contains(DELETES), "{path}: {page}");
        assert!(!before.contains(DELETES) && !after.contains(DELETES), "{path}: {page}");
    }
    let page = owner.get(package).expect(200).text();
    assert!(page.contains("with <span>1 version</span>"), "{page}");
}

#[test]
fn a_format_without_version_changes_shows_no_form_for_them() {
    let plugins = tempfile::tempdir().unwrap();
    std::fs::copy(checkout().join("target/release/guests/raw.wasm"), plugins.path().join("raw.wasm"))
        .expect("`just guests`");
    let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
    let body = json!({"name": "files", "format": "raw", "kind": "hosted"});
    Api::sign_in(&server).post("/v1/repositories", &body).expect(201);
    server.anonymous().basic(OWNER, PASSWORD).put("/repositories/files/a", "x").expect(201);
    let mut owner = Person::owner(&server);
    for path in ["/repositories/files/packages/a", "/repositories/files/packages/a/versions/latest"] {
        let page = owner.get(path).expect(200).text();
        assert!(page.contains("Published"), "{path}: {page}");
        for word in [DELETES, "Yank", "Deprecate"] {
            assert!(!page.contains(word), "{path}: {word}: {page}");
        }
    }
}
